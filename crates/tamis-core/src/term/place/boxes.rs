//! Boxes of longitudes and latitudes in a packed tree, which finds those that contain a point.

use super::{EARTH_RADIUS, Point};

/// All ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LonLatBox {
    pub west: f64,
    pub south: f64,
    pub east: f64,
    pub north: f64,
}

impl LonLatBox {
    fn holds(&self, point: Point) -> bool {
        self.west <= point.lon && point.lon <= self.east && self.south <= point.lat && point.lat <= self.north
    }

    fn around_all(boxes: &[Self]) -> Self {
        boxes[1..].iter().fold(boxes[0], |a, b| Self {
            west: a.west.min(b.west),
            south: a.south.min(b.south),
            east: a.east.max(b.east),
            north: a.north.max(b.north),
        })
    }

    fn middle(&self) -> (f64, f64) {
        ((self.west + self.east) / 2.0, (self.south + self.north) / 2.0)
    }
}

/// Boxes that hold a circle; two of them where it crosses the 180th meridian.
pub(super) fn around(centre: Point, metres: f64) -> Vec<LonLatBox> {
    // A little larger, so that rounding cuts nothing off.
    let angle = metres / EARTH_RADIUS * (1.0 + 1e-9) + 1e-12;
    let (south, north) = (centre.lat - angle.to_degrees(), centre.lat + angle.to_degrees());
    let (clipped_south, clipped_north) = (south.max(-90.0), north.min(90.0));
    let strip = |west: f64, east: f64| LonLatBox { west, south: clipped_south, east, north: clipped_north };
    if south <= -90.0 || north >= 90.0 {
        return vec![strip(-180.0, 180.0)];
    }
    let reach =
        (angle.sin() / centre.lat.to_radians().cos()).min(1.0).asin().to_degrees() * (1.0 + 1e-9) + 1e-9;
    let (west, east) = (centre.lon - reach, centre.lon + reach);
    if west < -180.0 {
        vec![strip(-180.0, east), strip(west + 360.0, 180.0)]
    } else if east > 180.0 {
        vec![strip(west, 180.0), strip(-180.0, east - 360.0)]
    } else if west == -180.0 || east == 180.0 {
        // Both sides of the meridian are the same place.
        vec![strip(west, east), strip(-180.0, -180.0), strip(180.0, 180.0)]
    } else {
        vec![strip(west, east)]
    }
}

const FAN_OUT: usize = 16;

/// Boxes in leaves of sixteen, packed by place (sort-tile-recursive), and boxes around sixteen of them on each level.
pub(super) struct BoxTree {
    /// The leaves first; level n + 1 has a box for each sixteen of level n.
    levels: Vec<Vec<LonLatBox>>,
    /// What each leaf stands for.
    owners: Vec<u32>,
}

impl BoxTree {
    pub fn new(mut boxes: Vec<(LonLatBox, u32)>) -> Self {
        let by = |of: fn((f64, f64)) -> f64| {
            move |a: &(LonLatBox, u32), b: &(LonLatBox, u32)| of(a.0.middle()).total_cmp(&of(b.0.middle()))
        };
        boxes.sort_by(by(|middle| middle.0));
        let leaves = boxes.len().div_ceil(FAN_OUT).max(1);
        let slices = (leaves as f64).sqrt().ceil() as usize;
        for slice in boxes.chunks_mut(leaves.div_ceil(slices) * FAN_OUT) {
            slice.sort_by(by(|middle| middle.1));
        }
        let (leaf, owners): (Vec<LonLatBox>, Vec<u32>) = boxes.into_iter().unzip();
        let mut levels = vec![leaf];
        while let Some(last) = levels.last().filter(|level| level.len() > FAN_OUT) {
            let next = last.chunks(FAN_OUT).map(LonLatBox::around_all).collect();
            levels.push(next);
        }
        Self { levels, owners }
    }

    /// Calls `found` with the owner of each box that holds the point.
    pub fn holding(&self, point: Point, found: &mut dyn FnMut(u32)) {
        let top = self.levels.len() - 1;
        self.visit(top, 0..self.levels[top].len(), point, found);
    }

    fn visit(&self, level: usize, places: std::ops::Range<usize>, point: Point, found: &mut dyn FnMut(u32)) {
        for at in places {
            if !self.levels[level][at].holds(point) {
                continue;
            }
            if level == 0 {
                found(self.owners[at]);
            } else {
                let from = at * FAN_OUT;
                self.visit(level - 1, from..(from + FAN_OUT).min(self.levels[level - 1].len()), point, found);
            }
        }
    }
}
