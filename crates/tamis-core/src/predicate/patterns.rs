pub enum TextShape { Prefix(String), Suffix(String), Substring(String), Literals(Vec<String>), Opaque }
pub struct Patterns;
impl Patterns { pub fn new(_: Vec<(u32, TextShape)>) -> Self { Patterns } pub fn satisfied(&self, _: &str, _: &mut impl FnMut(u32), _: &mut impl FnMut(u32)) {} }
