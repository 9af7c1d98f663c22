//! A generated schema with many keys, whose tables reference one another as in a
//! large application: some tables are referenced by nearly all others.

/// The statements that create the schema, and its keys.
#[derive(Debug, Clone)]
pub struct Many {
    /// Creates the tables, each with rows.
    pub setup: String,
    /// The tables whose keys are migrated, as SQL writes them.
    pub keys: Vec<String>,
    /// All tables.
    pub tables: Vec<String>,
    /// The number of foreign keys.
    pub foreign_keys: usize,
}

/// `keys` tables with keys, and three more tables without one of their own that
/// only reference others. Each has so many rows.
pub fn many(keys: usize, rows: usize) -> Many {
    let name = |n: usize| match n {
        0 => "namespaces".to_owned(),
        1 => "users".to_owned(),
        2 => "projects".to_owned(),
        3 => "issues".to_owned(),
        4 => "notes".to_owned(),
        _ => format!("table_{n:03}"),
    };
    let count = keys + 3;
    let mut setup = String::new();
    let mut foreign_keys = 0;
    for n in 0..count {
        let table = name(n);
        // Numbers that look random, and are the same in each run.
        let mut seed = n * 2_654_435_761 % 4_294_967_291;
        let mut next = |below: usize| {
            seed = (seed * 48_271 + 11) % 2_147_483_647;
            seed % below
        };
        let mut parents: Vec<usize> = Vec::new();
        if n > 0 {
            parents.push(next(n.min(5)));
        }
        if n > 5 {
            parents.push([1, 2][next(2)]);
            for _ in 0..next(3) {
                parents.push(next(n.min(keys)));
            }
        }
        parents.sort_unstable();
        parents.dedup();
        let mut columns = String::new();
        for parent in &parents {
            foreign_keys += 1;
            let action = ["", " ON DELETE CASCADE", " ON DELETE SET NULL"][next(3)];
            columns += &format!(", {0}_id int REFERENCES {0}{action}", name(*parent));
        }
        let key = if n < keys {
            "id serial PRIMARY KEY"
        } else {
            "key uuid PRIMARY KEY DEFAULT gen_random_uuid()"
        };
        setup += &format!("CREATE TABLE {table} ({key}{columns}, note text);\n");
        for parent in &parents {
            setup += &format!("CREATE INDEX ON {table} ({}_id);\n", name(*parent));
        }
        // Row n of a table references row n of others.
        let names: String = parents
            .iter()
            .map(|parent| format!("{}_id, ", name(*parent)))
            .collect();
        let values = "n, ".repeat(parents.len());
        setup += &format!(
            "INSERT INTO {table} ({names}note) SELECT {values}'n' FROM generate_series(1, {rows}) AS n;\n"
        );
    }
    // Issues reference themselves, and the newest note of a project closes a circle.
    setup += "ALTER TABLE issues ADD COLUMN moved_to_id int REFERENCES issues;\n\
              ALTER TABLE projects ADD COLUMN pinned_note_id int REFERENCES notes ON DELETE SET NULL;\n\
              UPDATE projects SET pinned_note_id = id; UPDATE issues SET moved_to_id = id WHERE id % 2 = 0; ANALYZE;\n";
    foreign_keys += 2;
    Many {
        setup,
        keys: (0..keys).map(name).collect(),
        tables: (0..count).map(name).collect(),
        foreign_keys,
    }
}
