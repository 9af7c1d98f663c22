//! The bounds of the IDs that a server may have issued: one for each layout and node number that it
//! has had.
//!
//! After a start, a server issues IDs above those that it issued before, in any database and with
//! any layout. Earlier node numbers matter only with another layout: IDs of the same layout and
//! another node number are different numbers.

use std::fmt;
use std::str::FromStr;

use crate::{Identity, Layout, SnowflakeId};

/// No ID with this layout and node number has been issued at or above this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The layout.
    pub layout: Layout,
    /// The node number.
    pub node: u32,
    /// The first ID that is not reserved.
    pub bound_id: SnowflakeId,
}

/// A bound for each layout and node number, the highest first.
///
/// The text has a title line, and a line for each bound: bound, node number, layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds(Vec<Bound>);

/// A text that is no list of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no list of bounds")]
pub struct BoundsError;

/// The first line, with the version of what follows.
const TITLE: &str = "snowflake floor 1";

impl Bounds {
    /// How many are kept. Their text has at most 4 kB.
    pub const MAX_COUNT: usize = 24;

    /// The bound above which this server has to issue IDs; 0 if there is none.
    #[must_use]
    pub fn highest_for(&self, identity: &Identity) -> SnowflakeId {
        self.0
            .iter()
            .filter(|it| it.layout != *identity.layout() || it.node == identity.node())
            .map(|it| it.bound_id)
            .max()
            .unwrap_or(SnowflakeId::ZERO)
    }

    /// Raises the bound of one layout and node number. It is never lowered. If there are too many
    /// bounds, the lowest of the others is dropped: it is the furthest behind the clock.
    pub fn raise(&mut self, new: Bound) {
        let is_same = |it: &Bound| it.layout == new.layout && it.node == new.node;
        match self.0.iter_mut().find(|it| is_same(it)) {
            Some(known) => known.bound_id = known.bound_id.max(new.bound_id),
            None => self.0.push(new),
        }
        self.0.sort_by_key(|it| std::cmp::Reverse(it.bound_id));
        if self.0.len() > Self::MAX_COUNT
            && let Some(lowest) = self.0.iter().rposition(|it| !is_same(it))
        {
            self.0.remove(lowest);
        }
    }
}

impl FromIterator<Bound> for Bounds {
    fn from_iter<I: IntoIterator<Item = Bound>>(bounds: I) -> Self {
        let mut all = Bounds::default();
        bounds.into_iter().for_each(|bound| all.raise(bound));
        all
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        for Bound {
            layout,
            node,
            bound_id,
        } in &self.0
        {
            writeln!(f, "{bound_id} {node} {layout}")?;
        }
        Ok(())
    }
}

impl FromStr for Bounds {
    type Err = BoundsError;

    fn from_str(text: &str) -> Result<Self, BoundsError> {
        let parse = |line: &str| {
            let (bound_id, rest) = line.split_once(' ')?;
            let (node, layout) = rest.split_once(' ')?;
            Some(Bound {
                layout: layout.parse().ok()?,
                node: node.parse().ok()?,
                bound_id: SnowflakeId::new(bound_id.parse().ok()?)?,
            })
        };
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(BoundsError);
        }
        lines.map(parse).collect::<Option<_>>().ok_or(BoundsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn bound(layout: &str, node: u32, bound_id: i64) -> Bound {
        Bound {
            layout: layout.parse().expect("a layout"),
            node,
            bound_id: SnowflakeId::new(bound_id).expect("an ID"),
        }
    }

    fn highest(bounds: &Bounds, layout: &str, node: u32) -> i64 {
        let identity = Identity::new(layout.parse().expect("a layout"), node);
        bounds.highest_for(&identity.expect("an identity")).get()
    }

    #[test]
    fn another_node_number_of_the_same_layout_does_not_count() {
        let bounds = Bounds::from_iter([bound("default", 1, 1_000), bound("default", 2, 2_000)]);
        assert_eq!(highest(&bounds, "default", 1), 1_000);
        assert_eq!(highest(&bounds, "default", 2), 2_000);
        assert_eq!(highest(&bounds, "default", 3), 0);
        // IDs of another layout may be the same numbers.
        assert_eq!(highest(&bounds, "twitter", 3), 2_000);
        assert_eq!(highest(&Bounds::default(), "default", 1), 0);
    }

    #[test]
    fn a_bound_is_never_lowered() {
        let mut bounds = Bounds::from_iter([bound("default", 1, 1_000)]);
        bounds.raise(bound("default", 1, 10));
        assert_eq!(highest(&bounds, "default", 1), 1_000);
        bounds.raise(bound("default", 1, 1_001));
        assert_eq!(highest(&bounds, "default", 1), 1_001);
    }

    #[test]
    fn the_lowest_bound_is_dropped_but_never_the_one_that_is_raised() {
        let others = (0..100).map(|node| bound("default", node % 50 + 1, 5_000 + i64::from(node)));
        let mut bounds: Bounds = others.collect();
        bounds.raise(bound("default", 0, 1));
        assert_eq!(bounds.0.len(), Bounds::MAX_COUNT);
        assert_eq!(highest(&bounds, "default", 0), 1);
        assert_eq!(highest(&bounds, "default", 50), 5_099);
        assert_eq!(
            highest(&bounds, "default", 1),
            0,
            "the lowest of the others"
        );
        for round in 2..200 {
            bounds.raise(bound("default", 0, round));
            assert_eq!(bounds.0.len(), Bounds::MAX_COUNT);
            assert_eq!(highest(&bounds, "default", 0), round);
        }
    }

    #[test]
    fn the_text_is_read_as_it_was_written_and_short_enough() {
        let presets = presets().iter().cycle();
        let all: Bounds = presets
            .zip(0..Bounds::MAX_COUNT)
            .map(|(preset, number)| {
                let mut bound = bound(preset.name, number as u32, i64::MAX);
                bound.node = u32::MAX - number as u32;
                bound
            })
            .collect();
        assert_eq!(all.0.len(), Bounds::MAX_COUNT);
        let text = all.to_string();
        assert_eq!(text.parse(), Ok(all));
        assert!(text.len() <= 4_096, "{}", text.len());
        assert_eq!(Bounds::default().to_string().parse(), Ok(Bounds::default()));
        for wrong in [
            "",
            "snowflake floor 2\n",
            "snowflake floor 1\n1",
            "snowflake floor 1\n-1 1 default",
        ] {
            assert_eq!(wrong.parse::<Bounds>(), Err(BoundsError), "{wrong}");
        }
    }
}
