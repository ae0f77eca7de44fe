//! Polygons in the text form of the Open Geospatial Consortium: `POLYGON((x y, x y, …), (hole))`, `MULTIPOLYGON(…)`.
//!
//! x is a longitude and y a latitude, in degrees. Edges are straight lines in longitude and latitude. A point
//! on an edge is inside.

use super::Point;
use super::boxes::LonLatBox;

/// Rings, each closed; a point is inside if it is in an odd number of them, or on an edge.
#[derive(Debug)]
pub(super) struct Polygon(Vec<Vec<Point>>);

impl Polygon {
    pub fn holds(&self, point: Point) -> bool {
        let mut is_inside = false;
        for ring in &self.0 {
            for edge in ring.windows(2) {
                let (a, b) = (edge[0], edge[1]);
                let cross = (b.lon - a.lon) * (point.lat - a.lat) - (b.lat - a.lat) * (point.lon - a.lon);
                let between = |low: f64, high: f64, x: f64| low.min(high) <= x && x <= low.max(high);
                if cross == 0.0 && between(a.lon, b.lon, point.lon) && between(a.lat, b.lat, point.lat) {
                    return true;
                }
                // An edge that crosses the line to the east of the point.
                if (a.lat > point.lat) != (b.lat > point.lat) && (cross > 0.0) == (b.lat > a.lat) {
                    is_inside = !is_inside;
                }
            }
        }
        is_inside
    }

    pub fn bounds(&self) -> LonLatBox {
        let of = |pick: fn(&Point) -> f64, choose: fn(f64, f64) -> f64| {
            self.0.iter().flatten().map(pick).reduce(choose).expect("a ring has points")
        };
        LonLatBox {
            west: of(|point| point.lon, f64::min),
            south: of(|point| point.lat, f64::min),
            east: of(|point| point.lon, f64::max),
            north: of(|point| point.lat, f64::max),
        }
    }
}

/// The polygons of a text, or what is wrong with it.
pub(super) fn polygons(text: &str) -> Result<Vec<Polygon>, String> {
    let trimmed = text.trim();
    let word_end = trimmed.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let (word, rest) = trimmed.split_at(word_end);
    let mut reader = Reader { text: rest };
    let polygons = match word.to_ascii_uppercase().as_str() {
        "POLYGON" => vec![reader.polygon()?],
        "MULTIPOLYGON" => reader.list(Reader::polygon)?,
        other => return Err(format!("expected POLYGON or MULTIPOLYGON, found {other:?}")),
    };
    match reader.text.trim() {
        "" => Ok(polygons),
        more => Err(format!("{more:?} follows it")),
    }
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, wanted: char) -> bool {
        let rest = self.text.trim_start().strip_prefix(wanted);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) {
            return Ok(());
        }
        match self.text.trim_start().chars().next() {
            Some(found) => Err(format!("expected {wanted:?}, found {found:?}")),
            None => Err(format!("expected {wanted:?}, found the end")),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.expect('(')?;
        let mut items = vec![];
        loop {
            items.push(item(self)?);
            if !self.take(',') {
                self.expect(')')?;
                return Ok(items);
            }
        }
    }

    fn polygon(&mut self) -> Result<Polygon, String> {
        self.list(Self::ring).map(Polygon)
    }

    fn ring(&mut self) -> Result<Vec<Point>, String> {
        let ring = self.list(Self::point)?;
        match ring.as_slice() {
            [first, .., last] if first != last => Err("a ring ends where it starts".into()),
            [_, _, _, _, ..] => Ok(ring),
            _ => Err("a ring has at least three corners, and the first once more".into()),
        }
    }

    fn point(&mut self) -> Result<Point, String> {
        let (lon, lat) = (self.number()?, self.number()?);
        Point::new(lat, lon).ok_or_else(|| {
            format!("{lon} {lat} is not a longitude from -180 to 180 and a latitude from -90 to 90")
        })
    }

    fn number(&mut self) -> Result<f64, String> {
        let text = self.text.trim_start();
        let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+-.".contains(letter)));
        let (number, rest) = text.split_at(end.unwrap_or(text.len()));
        self.text = rest;
        number.parse().map_err(|_| format!("{number:?} is not a number"))
    }
}
