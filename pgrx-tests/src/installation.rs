//! The PostgreSQL tree that servers are started from.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The variable that names the `pg_config` of the tree under test.
pub const PG_CONFIG: &str = "PG_CONFIG";

/// The variable that names the `pg_config` of a tree with the extension, of
/// another minor release of the version under test.
pub const OTHER_MINOR_PG_CONFIG: &str = "SNOWFLAKE_OTHER_MINOR_PG_CONFIG";

/// The variable that names the `pg_config` of a tree to upgrade from, of an
/// earlier version and with the extension.
pub const EARLIER_PG_CONFIG: &str = "SNOWFLAKE_EARLIER_PG_CONFIG";

/// One PostgreSQL installation, as its `pg_config` describes it.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The directory of `postgres`, `initdb` and `psql`.
    pub bin: PathBuf,
    /// The directory of the extensions' control files (`SHAREDIR/extension`).
    pub extensions: PathBuf,
    /// The version as printed, for example `15.14 (Debian 15.14-0+deb12u1)`.
    pub version: String,
    /// The major version, for example 15.
    pub major: u32,
}

impl Installation {
    /// The installation that a `pg_config` describes.
    pub fn from_pg_config(pg_config: &Path) -> Result<Self> {
        let ask = |option: &str| -> Result<String> {
            let output = Command::new(pg_config)
                .arg(option)
                .output()
                .with_context(|| format!("running {} {option}", pg_config.display()))?;
            ensure!(
                output.status.success(),
                "{} {option} failed: {}",
                pg_config.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            );
            Ok(String::from_utf8(output.stdout)?.trim().to_owned())
        };
        let version = ask("--version")?
            .trim_start_matches("PostgreSQL ")
            .to_owned();
        let digits: String = version
            .chars()
            .take_while(|character| character.is_ascii_digit())
            .collect();
        Ok(Self {
            bin: PathBuf::from(ask("--bindir")?),
            extensions: Path::new(&ask("--sharedir")?).join("extension"),
            major: digits
                .parse()
                .with_context(|| format!("no major version in {version:?}"))?,
            version,
        })
    }

    /// The tree under test, from `PG_CONFIG`, with the extension installed.
    pub fn under_test() -> Result<Self> {
        let installation = Self::from_variable(PG_CONFIG)?;
        installation.require_extension()?;
        Ok(installation)
    }

    /// The tree of another minor release, an earlier or a later one. It is the one
    /// under test where there is no other.
    pub fn other_minor() -> Result<Self> {
        let installation = Self::from_variable(OTHER_MINOR_PG_CONFIG)?;
        installation.require_extension()?;
        Ok(installation)
    }

    /// The tree to upgrade from, or the one under test if none is named.
    /// `pg_upgrade` works the same way between servers of one version.
    pub fn earlier() -> Result<Self> {
        if std::env::var_os(EARLIER_PG_CONFIG).is_none() {
            return Self::under_test();
        }
        let installation = Self::from_variable(EARLIER_PG_CONFIG)?;
        installation.require_extension()?;
        Ok(installation)
    }

    /// The tree that a variable names, with or without the extension.
    pub fn from_variable(variable: &str) -> Result<Self> {
        let Some(pg_config) = std::env::var_os(variable) else {
            bail!("{variable} is not set: it names the pg_config to test with (see `make test`)");
        };
        Self::from_pg_config(Path::new(&pg_config))
    }

    /// A client program: this tree's, or the one on `PATH` if the tree has none,
    /// because Debian packages clients separately.
    pub fn client_program(&self, name: &str) -> PathBuf {
        let own = self.bin.join(name);
        if own.exists() {
            own
        } else {
            PathBuf::from(name)
        }
    }

    /// Copies the programs and SHAREDIR, because PostgreSQL finds its files relative to
    /// where `postgres` is. The libraries stay where they are.
    pub fn copy_to(&self, directory: &Path) -> Result<Self> {
        let share = self.extensions.parent().context("no SHAREDIR")?;
        let asked = Command::new(self.bin.join("pg_config"))
            .arg("--pkglibdir")
            .output()?;
        let libraries = PathBuf::from(String::from_utf8(asked.stdout)?.trim());
        let prefix = self
            .bin
            .ancestors()
            .find(|prefix| share.starts_with(prefix) && libraries.starts_with(prefix))
            .context("the tree's directories have nothing in common")?;
        let place = |path: &Path| -> Result<PathBuf> {
            let target = directory.join("tree").join(path.strip_prefix(prefix)?);
            fs::create_dir_all(target.parent().context("no parent")?)?;
            Ok(target)
        };
        for path in [self.bin.as_path(), share] {
            let status = Command::new("cp")
                .arg("-a")
                .arg(path)
                .arg(place(path)?)
                .status()?;
            ensure!(status.success(), "copying {} failed", path.display());
        }
        symlink(&libraries, place(&libraries)?)?;
        let copy = Self::from_pg_config(&place(&self.bin)?.join("pg_config"))?;
        // Nothing is written into the tree under test.
        ensure!(copy.extensions.starts_with(directory), "{copy:?}");
        Ok(copy)
    }

    fn require_extension(&self) -> Result<()> {
        let control = self.extensions.join("snowflake.control");
        ensure!(
            control.exists(),
            "the extension is not installed: {} does not exist",
            control.display()
        );
        Ok(())
    }
}
