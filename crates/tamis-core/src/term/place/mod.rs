//! Places: `within_distance(lat, lon, 52.52, 13.40, 1500)` and `within_polygon(lat, lon, 'POLYGON((…))')`.
//!
//! All shapes on one pair of coordinates are a family, found with one tree of their bounding boxes.

mod boxes;
mod wkt;

use std::any::Any;
use std::sync::Arc;

use super::boolean::{BooleanTerm, Finder, Member, value_of};
use super::{Argument, MAX_TEXT_BYTES, Term, TermId};
use crate::error::ExpressionError;
use crate::value::{Kind, Value, ValueRef};
use boxes::{BoxTree, LonLatBox};
use wkt::Polygon;

/// Metres: the mean radius of the earth.
pub const EARTH_RADIUS: f64 = 6_371_008.8;

/// A point on the sphere, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    lat: f64,
    lon: f64,
}

impl Point {
    /// `None` beyond the poles, beyond the 180th meridian, and for NaN.
    fn new(lat: f64, lon: f64) -> Option<Self> {
        ((-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon)).then_some(Self { lat, lon })
    }

    /// Metres on the sphere.
    fn distance(self, other: Self) -> f64 {
        let half_sine = |degrees: f64| (degrees.to_radians() / 2.0).sin();
        let (north, east) = (half_sine(self.lat - other.lat), half_sine(self.lon - other.lon));
        let shrunk = self.lat.to_radians().cos() * other.lat.to_radians().cos();
        let chord = north * north + shrunk * east * east;
        2.0 * EARTH_RADIUS * chord.min(1.0).sqrt().asin()
    }
}

#[derive(Debug)]
enum Shape {
    Circle { centre: Point, metres: f64 },
    Polygons(Vec<Polygon>),
}

impl Shape {
    fn holds(&self, point: Point) -> bool {
        match self {
            Shape::Circle { centre, metres } => centre.distance(point) <= *metres,
            Shape::Polygons(polygons) => polygons.iter().any(|polygon| polygon.holds(point)),
        }
    }

    /// Boxes that together hold all of its points, and maybe others.
    fn boxes(&self) -> Vec<LonLatBox> {
        match self {
            Shape::Circle { centre, metres } => boxes::around(*centre, *metres),
            Shape::Polygons(polygons) => polygons.iter().map(Polygon::bounds).collect(),
        }
    }
}

/// Whether a point lies in a shape, as a term.
#[derive(Debug)]
pub struct WithinShape {
    shape: Shape,
    /// The latitude and the longitude.
    inputs: [Term; 2],
    /// What is written behind them.
    operands: Box<[Argument]>,
    name: &'static str,
    text: Box<str>,
    family: Box<str>,
}

/// Whether it is the name of a function about places.
pub fn is_place(name: &str) -> bool {
    [DISTANCE, POLYGON].iter().any(|known| known.eq_ignore_ascii_case(name))
}

pub const DISTANCE: &str = "within_distance";
pub const POLYGON: &str = "within_polygon";

const DISTANCE_HINT: &str = "write within_distance(lat, lon, 52.52, 13.40, 1500): degrees, and metres";
const POLYGON_HINT: &str = "write within_polygon(lat, lon, 'POLYGON((13.3 52.5, 13.5 52.5, 13.4 52.6, 13.3 52.5))'): longitude first, closed";

impl WithinShape {
    /// The term of a call.
    ///
    /// ```
    /// use tamis_core::term::{Argument, Term, WithinShape};
    /// use tamis_core::event::Value;
    /// let coordinates = ["lat", "lon"].map(|name| Argument::Term(Term::attribute(name)));
    /// let circle = [52.52, 13.4, 1500.0].map(|number| Argument::Constant(Value::Float(number)));
    /// let term = WithinShape::term("within_distance", [&coordinates[..], &circle].concat()).unwrap();
    /// assert_eq!(term.to_string(), "within_distance(lat, lon, 52.52, 13.4, 1500.0)");
    /// ```
    pub fn term(name: &str, arguments: Vec<Argument>) -> Result<Term, ExpressionError> {
        let wrong = |message: &str, hint: &str| Err(ExpressionError::new(message).with_hint(hint));
        let is_distance = name.eq_ignore_ascii_case(DISTANCE);
        let hint = if is_distance { DISTANCE_HINT } else { POLYGON_HINT };
        let [Argument::Term(lat), Argument::Term(lon), operands @ ..] = &*arguments else {
            return wrong("expected the latitude and the longitude of the event first", hint);
        };
        for coordinate in [lat, lon] {
            if coordinate.kind().is_some_and(|kind| kind != Kind::Number) {
                return wrong(&format!("{coordinate} is not a number"), hint);
            }
        }
        let shape = match operands {
            [Argument::Constant(lat), Argument::Constant(lon), Argument::Constant(metres)] if is_distance => {
                let number = |value: &Value| value.as_ref().nearest_float().unwrap_or(f64::NAN);
                let Some(centre) = Point::new(number(lat), number(lon)) else {
                    return wrong(
                        "the centre has a latitude from -90 to 90 and a longitude from -180 to 180",
                        hint,
                    );
                };
                let metres = number(metres);
                if !(metres.is_finite() && metres >= 0.0) {
                    return wrong("the distance is a finite number of metres, not below 0", hint);
                }
                Shape::Circle { centre, metres }
            }
            [Argument::Constant(Value::Str(text))] if !is_distance => {
                Shape::Polygons(wkt::polygons(text).map_err(|message| {
                    ExpressionError::new(format!("this is not a polygon: {message}")).with_hint(hint)
                })?)
            }
            _ => return wrong(&format!("{} takes other values", name.to_ascii_lowercase()), hint),
        };
        let name = if is_distance { DISTANCE } else { POLYGON };
        let written: Vec<String> = arguments.iter().map(Argument::to_string).collect();
        let text = format!("{name}({})", written.join(", "));
        if text.len() > MAX_TEXT_BYTES {
            return Err(ExpressionError::new(format!(
                "a term of {} bytes is longer than the limit of {MAX_TEXT_BYTES}",
                text.len()
            )));
        }
        let within = Self {
            shape,
            family: format!("place {lat}, {lon}").into(),
            inputs: [lat.clone(), lon.clone()],
            operands: operands.into(),
            name,
            text: text.into(),
        };
        Ok(Term::Boolean(Arc::new(within)))
    }
}

fn point(lat: ValueRef<'_>, lon: ValueRef<'_>) -> Option<Point> {
    Point::new(lat.nearest_float()?, lon.nearest_float()?)
}

impl BooleanTerm for WithinShape {
    fn text(&self) -> &str {
        &self.text
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn inputs(&self) -> &[Term] {
        &self.inputs
    }

    fn truth(&self, inputs: &[ValueRef<'_>]) -> Option<bool> {
        point(inputs[0], inputs[1]).map(|point| self.shape.holds(point))
    }

    fn depth(&self) -> usize {
        1 + self.inputs.iter().map(Term::depth).max().unwrap_or(0)
    }

    fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Result<Term, ExpressionError> {
        let inputs = self.inputs.iter().map(|input| input.renamed(rename).map(Argument::Term));
        let arguments = inputs.chain(self.operands.iter().cloned().map(Ok)).collect::<Result<_, _>>()?;
        Self::term(self.name, arguments)
    }

    fn finder(&self, members: &[Member]) -> Option<Box<dyn Finder>> {
        Shapes::new(members).map(|shapes| Box::new(shapes) as Box<dyn Finder>)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The shapes of one family, by their boxes.
struct Shapes {
    members: Vec<Member>,
    tree: BoxTree,
    coordinates: [TermId; 2],
    /// Those that are also asked whether they are false.
    asked_for_false: Vec<u32>,
}

impl Shapes {
    fn new(members: &[Member]) -> Option<Self> {
        let mut boxes = vec![];
        for (number, member) in members.iter().enumerate() {
            let within = member.term.as_any().downcast_ref::<WithinShape>()?;
            boxes.extend(within.shape.boxes().into_iter().map(|one| (one, number as u32)));
        }
        let numbered = || members.iter().zip(0..);
        Some(Self {
            tree: BoxTree::new(boxes),
            coordinates: [members[0].inputs[0], members[0].inputs[1]],
            asked_for_false: numbered()
                .filter(|(one, _)| one.wants_false)
                .map(|(_, number)| number)
                .collect(),
            members: members.to_vec(),
        })
    }

    fn holds(&self, member: u32, point: Point) -> bool {
        let within = self.members[member as usize].term.as_any().downcast_ref::<WithinShape>();
        within.is_some_and(|within| within.shape.holds(point))
    }
}

impl Finder for Shapes {
    fn find(&self, values: &[(TermId, ValueRef<'_>)], found: &mut dyn FnMut(usize, bool)) {
        let [lat, lon] = self.coordinates.map(|term| value_of(values, term));
        let Some(point) = point(lat, lon) else { return };
        self.tree.holding(point, &mut |member| {
            if self.holds(member, point) {
                found(member as usize, true);
            }
        });
        for &member in &self.asked_for_false {
            if !self.holds(member, point) {
                found(member as usize, false);
            }
        }
    }
}
