//! For tests only: the pages and the log, with what tests add. Each question is written into a trace
//! ([`crate::trace`]), a test may hold the process there ([`crash_points`]), and a protection may be
//! taken away ([`unprotected`]).

use pgrx::pg_sys;
use snowflake_id::Bounds;
use snowflake_id::protocol::{LogPosition, MarkPage, NotOpened, Storage};

use crate::clock;
use crate::error::Error;
use crate::generator::storage::Pages;
use crate::pg::sequence::{Sequence, SequencePage};
use crate::pg::session::{database, process_id};
use crate::shared::LwLock;
use crate::trace::line;
use crate::{crash_points, unprotected};

pub struct Watched(Pages);

impl Watched {
    pub fn of(mark: pg_sys::Oid) -> Self {
        Watched(Pages::of(mark))
    }

    pub fn mark(&self) -> pg_sys::Oid {
        self.0.mark()
    }

    pub fn set_mark(&self, mark: pg_sys::Oid) {
        self.0.set_mark(mark);
    }
}

impl Storage for Watched {
    type Error = Error;
    type Mark = Sequence;
    type Page = SequencePage;
    type Floor = LwLock;

    async fn open_mark(&self, wait_ms: i64) -> Result<Sequence, NotOpened<Error>> {
        self.0.open_mark(wait_ms).await
    }

    async fn lock_page(&self, mark: &Sequence) -> SequencePage {
        self.0.lock_page(mark).await
    }

    fn read_page(&self, page: &SequencePage) -> MarkPage {
        let read = if unprotected::is("mark") {
            // As in a new database.
            MarkPage::NEW
        } else {
            self.0.read_page(page)
        };
        let (database, bound, number) = (database().to_u32(), read.bound_id, read.start_number);
        line(format_args!("read-mark {database} {bound} {number}"));
        read
    }

    fn record_of(&self, page: &SequencePage) -> LogPosition {
        self.0.record_of(page)
    }

    async fn write_page(
        &self,
        mark: &Sequence,
        page: &mut SequencePage,
        to: MarkPage,
    ) -> LogPosition {
        line(format_args!(
            "write-mark {} {} {} {} {}",
            process_id(),
            database().to_u32(),
            to.bound_id,
            to.start_number,
            clock::wall().unix_micros()
        ));
        let record = self.0.write_page(mark, page, to).await;
        line(format_args!("wrote {} {}", process_id(), record.0));
        crash_points::at(c"snowflake-mark-written");
        record
    }

    async fn lock_floor(&self) -> LwLock {
        self.0.lock_floor().await
    }

    async fn read_floor(&self, floor: &LwLock) -> Result<Bounds, Error> {
        if unprotected::is("mark") {
            return Ok(Bounds::default());
        }
        let bounds = self.0.read_floor(floor).await?;
        line(format_args!("read-floor {}", in_one_line(&bounds)));
        Ok(bounds)
    }

    async fn write_floor(&self, floor: &mut LwLock, to: &Bounds) -> Result<LogPosition, Error> {
        line(format_args!(
            "write-floor {} {}",
            process_id(),
            in_one_line(to)
        ));
        let record = self.0.write_floor(floor, to).await?;
        line(format_args!("wrote {} {}", process_id(), record.0));
        crash_points::at(c"snowflake-floor-written");
        Ok(record)
    }

    async fn flush(&self, position: LogPosition) {
        if unprotected::is("flush") {
            return;
        }
        // What ends later may have been written meanwhile.
        let end = match position {
            LogPosition(0) => crate::pg::wal::end(),
            LogPosition(end) => end,
        };
        self.0.flush(LogPosition(end)).await;
        line(format_args!("flushed {end}"));
    }

    async fn is_in_recovery(&self) -> bool {
        self.0.is_in_recovery().await
    }
}

fn in_one_line(bounds: &Bounds) -> String {
    bounds.to_string().replace('\n', ";")
}
