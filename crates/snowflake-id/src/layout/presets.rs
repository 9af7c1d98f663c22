//! Layouts that have a name.

use super::{Layout, parse};

/// A layout with a name. Most of them are those of other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name, which may be written in place of the text.
    pub name: &'static str,
    /// The layout in its canonical form.
    pub text: &'static str,
    /// Which system uses it, and what its fields mean there, in a line.
    pub about: &'static str,
}

impl Preset {
    /// The layout.
    pub fn layout(&self) -> Layout {
        parse::parse(self.text).expect("the text of every preset is a layout (tested)")
    }
}

/// All presets, `default` first.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

static PRESETS: [Preset; 13] = [
    Preset {
        name: "default",
        text: "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z",
        about: "64 servers with 16 backend slots each",
    },
    Preset {
        name: "twitter",
        text: "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z",
        about: "Twitter (X): node is the data centre, backend the worker; also Leaf, MyBatis-Plus \
                and Hutool by default",
    },
    Preset {
        name: "discord",
        text: "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z",
        about: "Discord: node is the worker, backend the process",
    },
    Preset {
        name: "instagram",
        text: "timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z",
        about: "Instagram: node is the logical shard",
    },
    Preset {
        name: "sonyflake",
        text: "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z",
        about: "Sonyflake: node is the machine",
    },
    Preset {
        name: "uid-generator",
        text: "timestamp:28 node:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z",
        about: "Baidu UidGenerator's default, exhausted since November 2024",
    },
    Preset {
        name: "tsid",
        text: "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z",
        about: "TSID Creator (Java) with 1024 nodes",
    },
    Preset {
        name: "mastodon",
        text: "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01T00:00:00Z",
        about: "Mastodon: one server, no node number",
    },
    Preset {
        name: "clickhouse",
        text: "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z",
        about: "ClickHouse generateSnowflakeID()",
    },
    Preset {
        name: "pgedge",
        text: "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01T00:00:00Z",
        about: "pgEdge Snowflake for PostgreSQL",
    },
    Preset {
        name: "ipv4",
        text: "timestamp:28 node:24 sequence:11 tick:1s epoch:2025-01-01T00:00:00Z",
        about: "node is the last three bytes of an IPv4 address",
    },
    Preset {
        name: "game",
        text: "timestamp:31 node:20 sequence:12 tick:1s epoch:2025-01-01T00:00:00Z",
        about: "a million game servers whose data is merged later",
    },
    Preset {
        name: "js53",
        text: "timestamp:38 node:5 sequence:10 tick:10ms epoch:2025-01-01T00:00:00Z",
        about: "53 bits, exact in a JavaScript Number",
    },
];

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_canonical_and_every_name_stands_for_it() {
        for preset in presets() {
            assert_eq!(preset.layout().to_string(), preset.text, "{}", preset.name);
            assert_eq!(preset.name.parse(), Ok(preset.layout()));
        }
    }

    #[test]
    fn names_are_distinct_and_default_is_first() {
        let mut names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
        assert_eq!(names[0], "default");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), presets().len());
    }

    /// Ends that are published, or follow from a published width and epoch.
    #[test]
    fn presets_end_when_they_are_known_to() {
        let end = |name: &str| {
            let layout: Layout = name.parse().unwrap();
            layout.expires_at().to_string()
        };
        assert_eq!(end("default"), "2094-09-07T15:47:35.552Z");
        assert_eq!(end("twitter"), "2080-07-10T17:30:30.209Z");
        assert_eq!(end("discord"), "2084-09-06T15:47:35.552Z");
        assert_eq!(end("uid-generator"), "2024-11-20T13:24:16Z");
        assert_eq!(end("clickhouse"), "2039-09-07T15:47:35.552Z");
        // 2^39 ticks of 10 ms: Sonyflake's documentation says about 174 years.
        assert!(end("sonyflake").starts_with("2188-"));
    }

    #[test]
    fn js53_is_exact_in_a_double() {
        let layout: Layout = "js53".parse().unwrap();
        let last = layout.last_id().get();
        assert_eq!(last, (1 << 53) - 1);
        assert_eq!(last as f64 as i64, last);
    }
}
