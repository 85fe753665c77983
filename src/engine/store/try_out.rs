//! A turn that only tries things out.

use crate::engine::store::store::Store;
use crate::engine::store::turn::Turn;
use crate::error::Fault;

impl Store {
    /// Runs one turn whose work takes back whatever it changes.
    ///
    /// # Errors
    /// The fault that stopped the store, now or before.
    pub(crate) fn try_out<T>(
        &mut self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (done, job) = self.prepare(work)?;
        assert!(job.is_none(), "nothing of a trial is written");
        Ok(done)
    }
}
