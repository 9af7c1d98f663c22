//! A cluster that Patroni manages, with etcd: the programs of Debian's packages.
//!
//! Each node has its own configuration file, which has its node number, and its own
//! directory of PostgreSQL's programs, in which `postgres` is a script: it runs the
//! server with the node's own clock.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::config::TargetSessionAttrs;
use postgres::{Client, Config, NoTls};
use serde_json::Value;

use crate::clock::{Clock, Kind, Offset};
use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::processes;
use crate::program::{self, Program, free_ports};
use crate::scratch::Scratch;
use crate::wait;

/// How long a node may take to join, and a failover to happen.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Nodes of a cluster.
const NODES: usize = 3;

/// etcd, and nodes that Patroni manages.
pub struct Patroni {
    // The order matters: what manages ends before what is managed.
    nodes: Vec<Node>,
    _etcd: Program,
    os_user: OsUser,
    _scratch: Scratch,
}

/// A node: its Patroni, and through it a server.
struct Node {
    program: Option<Program>,
    directory: PathBuf,
    clock: Clock,
    port: u16,
    api: u16,
}

/// A member, as Patroni reports it.
struct Member {
    node: usize,
    role: String,
    state: String,
    timeline: i64,
}

impl Patroni {
    /// Starts the nodes 1 to 3. `own` returns what the file of a node sets besides what
    /// all of them have.
    pub fn start(own: impl Fn(usize) -> Vec<(&'static str, String)>) -> Result<Self> {
        let installation = Installation::under_test()?;
        let os_user = OsUser::for_servers()?;
        let scratch = Scratch::new(&os_user)?;
        let [client, peer] = free_ports()?;
        let etcd = start_etcd(&os_user, &scratch, client, peer)?;
        let mut patroni = Patroni {
            nodes: Vec::new(),
            _etcd: etcd,
            os_user,
            _scratch: scratch,
        };
        for number in 1..=NODES {
            let node = Node::prepare(
                &patroni.os_user,
                &patroni._scratch,
                &installation,
                number,
                client,
                &own(number),
            )?;
            patroni.nodes.push(node);
            patroni.start_node(number)?;
            // The first one creates the cluster, which the others copy.
            patroni.wait_for("the node to be ready", |members| {
                members.len() == number
                    && members.iter().all(Member::is_ready)
                    && has_leader(members)
            })?;
        }
        patroni.wait_until_safe()?;
        Ok(patroni)
    }

    /// Starts the Patroni of a node, which starts the server.
    pub fn start_node(&mut self, number: usize) -> Result<()> {
        let node = &mut self.nodes[number - 1];
        let program = program::from_variable("SNOWFLAKE_PATRONI")?;
        // Unpacked beside it, as in Debian's package.
        let packages = program
            .with_file_name("")
            .join("../lib/python3/dist-packages");
        node.program = Some(Program::start(
            &self.os_user,
            &node.directory,
            Path::new("/usr/bin/python3"),
            &[
                "-m".into(),
                "patroni".into(),
                node.directory.join("patroni.yml").display().to_string(),
            ],
            [
                ("PYTHONPATH", packages.as_os_str()),
                ("PYTHONUNBUFFERED", "1".as_ref()),
            ],
        )?);
        Ok(())
    }

    /// Ends a node's Patroni and all processes of its server with SIGKILL.
    pub fn kill9(&mut self, number: usize) -> Result<()> {
        let node = &mut self.nodes[number - 1];
        if let Some(mut program) = node.program.take() {
            program.kill9()?;
        }
        let pid = fs::read_to_string(node.data().join("postmaster.pid"))?;
        let pid: i32 = pid.lines().next().unwrap_or_default().trim().parse()?;
        ensure!(
            processes::works_in(pid, &node.data()),
            "process {pid} is not of node {number}"
        );
        processes::kill9_tree(pid)?;
        Ok(())
    }

    /// Sets the clock of a node's server.
    pub fn set_clock(&self, number: usize, offset: Offset) -> Result<()> {
        self.nodes[number - 1].clock.set_offset(offset)
    }

    /// The number of the leader, once there is one that is not `former`.
    pub fn wait_for_leader_other_than(&mut self, former: usize) -> Result<usize> {
        let mut leader = 0;
        self.wait_for("another leader", |members| {
            leader = leader_of(members).map_or(0, |member| member.node);
            leader != 0 && leader != former
        })?;
        Ok(leader)
    }

    /// The number of the leader.
    pub fn leader(&mut self) -> Result<usize> {
        self.wait_for_leader_other_than(0)
    }

    /// Waits until every node is there, and a standby is synchronous: then the leader may fail.
    pub fn wait_until_safe(&mut self) -> Result<()> {
        self.wait_for("all nodes, and a synchronous standby", |members| {
            let streams = |member: &&Member| member.role != "leader" && member.is_ready();
            has_leader(members)
                && members.iter().filter(streams).count() == NODES - 1
                && members.iter().any(|member| member.role == "sync_standby")
        })
    }

    /// Makes the synchronous standby the leader, and returns its number.
    pub fn switch_over(&mut self) -> Result<usize> {
        let members = self.members()?;
        let leader = leader_of(&members).context("no leader")?.node;
        let standby = members
            .iter()
            .find(|member| member.role == "sync_standby")
            .context("no standby")?
            .node;
        let body = format!(r#"{{"leader": "node{leader}", "candidate": "node{standby}"}}"#);
        program::http("POST", self.nodes[leader - 1].api, "/switchover", &body)?;
        self.wait_for_leader_other_than(leader)
    }

    /// The timeline of the leader.
    pub fn timeline(&mut self) -> Result<i64> {
        Ok(leader_of(&self.members()?).context("no leader")?.timeline)
    }

    /// How clients find the leader: all nodes, of which only that one takes writes.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .user("postgres")
            .password("secret")
            .dbname("postgres")
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(Duration::from_secs(2))
            .tcp_user_timeout(Duration::from_secs(5));
        for node in &self.nodes {
            config.host("127.0.0.1").port(node.port);
        }
        config
    }

    /// Connects to the leader.
    pub fn connect(&self) -> Result<Client> {
        let config = self.config();
        let mut client = None;
        wait::until("a connection to the leader", TIMEOUT, || {
            client = config.connect(NoTls).ok();
            Ok(client.is_some())
        })?;
        client.context("no connection")
    }

    /// What the nodes that answer report.
    fn members(&self) -> Result<Vec<Member>> {
        let answer = self
            .nodes
            .iter()
            .filter(|node| node.program.is_some())
            .find_map(|node| program::http("GET", node.api, "/cluster", "").ok())
            .context("no node answers")?;
        let cluster: Value = serde_json::from_str(&answer)?;
        let members = cluster["members"].as_array().context("no members")?;
        Ok(members.iter().filter_map(Member::read).collect())
    }

    fn wait_for(&mut self, what: &str, mut condition: impl FnMut(&[Member]) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            for node in &mut self.nodes {
                if let Some(program) = &mut node.program {
                    program.require_running()?;
                }
            }
            if self.members().is_ok_and(|members| condition(&members)) {
                return Ok(());
            }
            if begun.elapsed() > TIMEOUT {
                let logs = self.nodes.iter().filter_map(|node| node.program.as_ref());
                let tails: Vec<_> = logs
                    .map(|program| crate::server::tail(&program.log(), 20))
                    .collect();
                anyhow::bail!(
                    "waited {TIMEOUT:?} for {what}; what Patroni has logged:\n{}",
                    tails.join("\n---\n")
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn leader_of(members: &[Member]) -> Option<&Member> {
    members
        .iter()
        .find(|member| member.role == "leader" && member.state == "running")
}

fn has_leader(members: &[Member]) -> bool {
    leader_of(members).is_some()
}

impl Member {
    fn read(member: &Value) -> Option<Self> {
        Some(Member {
            node: member["name"]
                .as_str()?
                .strip_prefix("node")?
                .parse()
                .ok()?,
            role: member["role"].as_str()?.to_owned(),
            state: member["state"].as_str()?.to_owned(),
            timeline: member["timeline"].as_i64().unwrap_or_default(),
        })
    }

    fn is_ready(&self) -> bool {
        matches!(self.state.as_str(), "running" | "streaming")
    }
}

fn start_etcd(os_user: &OsUser, scratch: &Scratch, client: u16, peer: u16) -> Result<Program> {
    let directory = scratch.subdirectory("etcd", os_user)?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let arguments = [
        ("--name", "one".to_owned()),
        ("--data-dir", directory.join("data").display().to_string()),
        ("--listen-client-urls", url(client)),
        ("--advertise-client-urls", url(client)),
        ("--listen-peer-urls", url(peer)),
        ("--initial-advertise-peer-urls", url(peer)),
        ("--initial-cluster", format!("one={}", url(peer))),
    ]
    .map(|(name, value)| format!("{name}={value}"));
    let program = program::from_variable("SNOWFLAKE_ETCD")?;
    let mut etcd = Program::start(
        os_user,
        &directory,
        &program,
        &arguments,
        [("ETCD_LOG_LEVEL", "warn")],
    )?;
    wait::until("etcd", TIMEOUT, || {
        etcd.require_running()?;
        Ok(program::http("GET", client, "/health", "").is_ok_and(|body| body.contains("true")))
    })?;
    Ok(etcd)
}

impl Node {
    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn prepare(
        os_user: &OsUser,
        scratch: &Scratch,
        installation: &Installation,
        number: usize,
        etcd: u16,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let directory = scratch.subdirectory(&format!("node{number}"), os_user)?;
        let [port, api] = free_ports()?;
        let clock = Clock::new(Kind::Mapped, &directory, os_user)?;
        let bin = directory.join("bin");
        fs::create_dir(&bin)?;
        for program in fs::read_dir(&installation.bin)? {
            let program = program?;
            if program.file_name() != "postgres" {
                symlink(program.path(), bin.join(program.file_name()))?;
            }
        }
        let environment: Vec<_> = clock
            .environment()
            .iter()
            .map(|(name, value)| format!("{name}='{value}'"))
            .collect();
        let script = format!(
            "#!/bin/sh\nexec env {} '{}' \"$@\"\n",
            environment.join(" "),
            installation.bin.join("postgres").display()
        );
        fs::write(bin.join("postgres"), script)?;
        fs::set_permissions(bin.join("postgres"), fs::Permissions::from_mode(0o755))?;
        let parameters: String = settings
            .iter()
            .map(|(name, value)| format!("    {name}: '{value}'\n"))
            .collect();
        fs::write(
            directory.join("patroni.yml"),
            configuration(number, &directory, port, api, etcd, &parameters),
        )?;
        os_user.own(&bin)?;
        Ok(Node {
            program: None,
            directory,
            clock,
            port,
            api,
        })
    }
}

/// A node's own file. What is under `bootstrap` goes into etcd, for all nodes.
fn configuration(
    number: usize,
    directory: &Path,
    port: u16,
    api: u16,
    etcd: u16,
    parameters: &str,
) -> String {
    let directory = directory.display();
    format!(
        "scope: tests
name: node{number}
restapi:
  listen: 127.0.0.1:{api}
  connect_address: 127.0.0.1:{api}
etcd3:
  host: 127.0.0.1:{etcd}
bootstrap:
  dcs:
    ttl: 10
    loop_wait: 1
    retry_timeout: 4
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters:
        wal_level: replica
        wal_log_hints: 'on'
        wal_keep_size: 512MB
        max_connections: 60
        jit: 'off'
  initdb:
    - encoding: UTF8
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {directory}/data
  bin_dir: {directory}/bin
  authentication:
    superuser: {{username: postgres, password: secret}}
    replication: {{username: replicator, password: secret}}
    rewind: {{username: rewinder, password: secret}}
  parameters:
    unix_socket_directories: {directory}
    fsync: 'off'
{parameters}tags: {{}}
"
    )
}
