//! What a reader saw beside what is in the table.

/// The comparison of what a reader saw with the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// IDs that the reader saw.
    pub seen: usize,
    /// Rows of the table that it did not see.
    pub lost: Vec<i64>,
    /// How often an ID was seen that had been seen before.
    pub twice: usize,
    /// How often an ID was less than the one before it.
    pub out_of_order: usize,
    /// IDs that it saw, but that are not in the table.
    pub gone: Vec<i64>,
}

impl Comparison {
    /// Compares IDs in the order in which they were seen with those of the table,
    /// which must be sorted.
    pub fn new(mut seen: Vec<i64>, table: &[i64]) -> Self {
        let out_of_order = seen.windows(2).filter(|it| it[0] > it[1]).count();
        let count = seen.len();
        if out_of_order > 0 {
            seen.sort_unstable();
        }
        seen.dedup();
        let mut result = Self {
            seen: count,
            twice: count - seen.len(),
            out_of_order,
            ..Self::default()
        };
        let mut rows = table.iter().copied().peekable();
        for id in seen {
            while let Some(row) = rows.next_if(|&row| row < id) {
                result.lost.push(row);
            }
            if rows.next_if_eq(&id).is_none() {
                result.gone.push(id);
            }
        }
        result.lost.extend(rows);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_counted() {
        let table = [10, 20, 30, 40];
        assert_eq!(
            Comparison::new(vec![10, 20, 30, 40], &table),
            Comparison {
                seen: 4,
                ..Comparison::default()
            }
        );
        assert_eq!(
            Comparison::new(vec![5, 20, 20, 35, 30, 20], &table),
            Comparison {
                seen: 6,
                lost: vec![10, 40],
                twice: 2,
                out_of_order: 2,
                gone: vec![5, 35],
            }
        );
        assert_eq!(Comparison::new(Vec::new(), &table).lost, table);
    }
}
