//! Shared memory. A slot is a cache line, so that backends don't slow each
//! other down; there must still be little of it, since it is paid on every
//! server whether it issues IDs or not.

use anyhow::Result;
use snowflake_tests::Cluster;
use snowflake_tests::ids::grouped;

const ALLOWED: i64 = 64 * 1024;

#[test]
fn shared_memory_is_at_most_64_kb_with_the_default_layout() -> Result<()> {
    let measure = |layout: &str| -> Result<i64> {
        let cluster = Cluster::builder()
            .conf("snowflake.layout", layout)
            .start()?;
        let row = cluster.connect()?.query_one(
            "SELECT coalesce(sum(allocated_size), 0)::bigint, count(*) FROM pg_shmem_allocations
             WHERE name ILIKE '%snowflake%'",
            &[],
        )?;
        let (bytes, areas): (i64, i64) = (row.get(0), row.get(1));
        println!(
            "footprint: layout \"{layout}\": {} bytes of shared memory in {areas} areas",
            grouped(u64::try_from(bytes)?)
        );
        Ok(bytes)
    };
    let default = measure("default")?;
    let one_slot = measure("timestamp:41 node:10 sequence:12")?;
    let widest = measure("timestamp:41 backend:12 sequence:10")?;
    assert!(default > 0, "no area in pg_shmem_allocations has its name");
    assert!(default <= ALLOWED, "{default} bytes");
    // 16 slots against one, 4,096 slots against 16, of at least 64 bytes, in
    // areas of whole 128 bytes: what was found is where the slots are.
    assert!(default - one_slot >= 15 * 64 - 128);
    assert!(widest - default >= (4_096 - 16) * 64);
    Ok(())
}
