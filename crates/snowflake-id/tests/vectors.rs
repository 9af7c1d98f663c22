//! IDs that others have published together with their fields, and where. `data/vectors.tsv` has the
//! sources.

#![cfg(not(loom))]

use snowflake_id::{Layout, Parts, SnowflakeId, Time, presets};

struct Vector {
    id: SnowflakeId,
    layout: Layout,
    parts: Parts,
}

fn vectors() -> Vec<Vector> {
    let mut lines = include_str!("data/vectors.tsv").lines();
    assert_eq!(
        lines.next(),
        Some("id\tlayout\tcreated_at\tnode\tsequence\tsource")
    );
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let &[id, layout, created_at, node, sequence, source] = columns.as_slice() else {
                panic!("{} columns: {line}", columns.len());
            };
            assert!(!source.is_empty(), "{line}");
            let created_at: jiff::Timestamp = created_at.parse().expect(line);
            Vector {
                id: SnowflakeId::new(id.parse().expect(line)).expect(line),
                layout: layout.parse().expect(line),
                parts: Parts {
                    time: Time::from_unix_micros(created_at.as_microsecond()),
                    node: node.parse().expect(line),
                    backend: 0,
                    sequence: sequence.parse().expect(line),
                },
            }
        })
        .collect()
}

#[test]
fn every_published_id_decodes_and_composes() {
    let vectors = vectors();
    for Vector { id, layout, parts } in &vectors {
        assert_eq!(layout.decode(*id), Ok(*parts), "{id}");
        assert_eq!(layout.compose(*parts), Ok(*id), "{id}");
        assert!(layout.min_id(parts.time).unwrap() <= *id, "{id}");
        assert!(layout.max_id(parts.time).unwrap() >= *id, "{id}");
    }
    assert_eq!(vectors.len(), 25, "rows in data/vectors.tsv");
    println!("checked {} published IDs", vectors.len());
}

/// Twitter's and Discord's own descriptions split the 10 bits that the vectors give as one number.
#[test]
fn presets_read_the_published_ids() {
    let mut checked = 0;
    for name in ["twitter", "discord"] {
        let preset = presets()
            .iter()
            .find(|preset| preset.name == name)
            .unwrap()
            .layout();
        for Vector { id, layout, parts } in vectors() {
            if layout.epoch() != preset.epoch() {
                continue;
            }
            let read = preset.decode(id).unwrap();
            assert_eq!(read.time, parts.time, "{id}");
            assert_eq!(read.node << 5 | read.backend, parts.node, "{id}");
            assert_eq!(read.sequence, parts.sequence, "{id}");
            checked += 1;
        }
    }
    assert_eq!(checked, 14, "rows with the epoch of Twitter or Discord");
    println!("checked {checked} published IDs against the presets twitter and discord");
}
