//! Head room: what is refused while the disk is nearly full, so that it is never full for what has to go on.
//!
//! Free space is looked at again and again, and what was written since is counted, so that between two looks nobody is
//! promised what is gone. Where it gets scarce, what brings something new is refused; what ends something goes on, out of
//! the head room. A part of that is kept in a ballast file, which holds it against everybody else on the disk and is
//! deleted when it is needed.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::engine::store::space::Space;
use crate::engine::store::space::StorageRoom;
use crate::engine::store::space::is_out_of_room;
use crate::limits;
use crate::mutex::Mutex;

/// A look comes about once a second: after a minute it is tried again whether the ballast can be made.
const DOUBTED_LOOKS: u32 = 60;

/// What the disk has room for. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DiskRoom {
    pub(crate) shared: Arc<DiskRoomLimits>,
}

impl fmt::Debug for DiskRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DiskRoom").field(&self.view()).finish()
    }
}

pub(crate) struct DiskRoomLimits {
    pub(crate) space: Box<dyn Space>,
    /// How much is kept free for what has to go on.
    head_room_bytes: u64,
    /// Bytes written to the store's file since it was opened.
    written: Arc<AtomicU64>,
    state: Mutex<DiskRoomState>,
}

#[derive(Default)]
pub(crate) struct DiskRoomState {
    /// Free bytes at the last look, and what had been written by then.
    free_bytes: u64,
    written_then: u64,
    /// What was admitted and is not written yet.
    promised_bytes: u64,
    /// What copies of the file under way take of this disk, at most.
    pub(crate) copies_bytes: u64,
    ballast: Ballast,
    /// Whether only what ends something goes on.
    pub(crate) is_full: bool,
    /// Looks for which it is not believed what the file system says, because a write has found no room: a quota may allow less. What was
    /// free then is counted down meanwhile.
    doubted_for: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Ballast {
    #[default]
    None,
    Making,
    There,
    /// Another file has its name, or the file system keeps no room for one.
    Barred,
}

impl DiskRoom {
    /// Looks at the disk. Where it is too full to open a file, the ballast is deleted.
    pub(crate) fn begin(
        space: impl Space,
        head_room_bytes: u64,
        written: Arc<AtomicU64>,
    ) -> io::Result<DiskRoom> {
        let ballast = if space.has_ballast(head_room_bytes) { Ballast::There } else { Ballast::None };
        let free_bytes = space.free()?;
        let state = DiskRoomState { free_bytes, ballast, ..DiskRoomState::default() };
        let shared =
            DiskRoomLimits { space: Box::new(space), head_room_bytes, written, state: Mutex::new(state) };
        let room = DiskRoom { shared: Arc::new(shared) };
        room.make_way(0);
        room.judge(&mut room.state());
        Ok(room)
    }

    /// How much room there is, as it is known now.
    pub(crate) fn view(&self) -> StorageRoom {
        let state = self.state();
        StorageRoom {
            free_bytes: self.left(&state),
            head_room_bytes: self.shared.head_room_bytes,
            is_full: state.is_full,
        }
    }

    /// Promises room for something new that takes so many bytes, if it leaves the head room alone.
    pub(crate) fn admit(&self, bytes: u64) -> bool {
        let mut state = self.state();
        let needed = bytes.saturating_add(self.full_below());
        if state.is_full || self.left(&state) < needed {
            // Nobody is refused for what was written over and over in one place.
            self.look(&mut state);
            self.judge(&mut state);
        }
        let admits = !state.is_full && self.left(&state) >= needed;
        state.promised_bytes += if admits { bytes } else { 0 };
        admits
    }

    /// Promises room for something that ends a message and takes so many bytes, out of the head room if need be. The last
    /// of that is for what takes nothing.
    pub(crate) fn admit_from_head_room(&self, bytes: u64) -> bool {
        let mut state = self.state();
        let rest = self.shared.head_room_bytes / 4;
        if self.left(&state) < bytes + rest {
            self.look(&mut state);
        }
        let admits = self.left(&state) >= bytes + rest;
        state.promised_bytes += if admits { bytes } else { 0 };
        admits
    }

    /// Notes that what was promised is written, or will not be.
    pub(crate) fn redeem(&self, bytes: u64) {
        let mut state = self.state();
        state.promised_bytes = state.promised_bytes.saturating_sub(bytes);
    }

    /// Sees to it that a commit of so many bytes finds room, if need be where the ballast is. Whoever is about to write
    /// calls this.
    pub(crate) fn make_way(&self, bytes: u64) {
        let mut state = self.state();
        let needed = bytes.saturating_mul(limits::ROOM_PER_BYTE).saturating_add(self.scarce_below());
        // Others on the disk write too: where little is left, what was found a moment ago is not relied on.
        let plenty = needed.saturating_add(self.shared.head_room_bytes.saturating_mul(2));
        if state.ballast != Ballast::There || self.free(&state) >= plenty {
            return;
        }
        self.look(&mut state);
        if self.free(&state) < needed {
            self.release(&mut state);
        }
    }

    /// Whether there is room for so many bytes that are written later, and not only for what must go on.
    pub(crate) fn is_roomy_for(&self, bytes: u64) -> bool {
        let needed = bytes.saturating_mul(limits::ROOM_PER_BYTE).saturating_add(self.roomy_from());
        self.left(&self.state()) >= needed
    }

    /// Deletes the ballast because a write has found no room; whether that has made some.
    pub(crate) fn rescue(&self) -> bool {
        let mut state = self.state();
        if state.ballast != Ballast::There {
            return false;
        }
        self.look(&mut state);
        let is_contradicted = self.free(&state) >= self.scarce_below();
        self.release(&mut state);
        let has_made_some = state.ballast == Ballast::None;
        if has_made_some && is_contradicted {
            self.doubt(&mut state, self.shared.head_room_bytes);
        }
        has_made_some
    }

    /// Believes the file system no longer, but that so much is free.
    fn doubt(&self, state: &mut DiskRoomState, free_bytes: u64) {
        if state.doubted_for == 0 {
            (state.free_bytes, state.written_then) =
                (free_bytes, self.shared.written.load(Ordering::Relaxed));
        }
        state.doubted_for = DOUBTED_LOOKS;
        self.judge(state);
    }

    fn release(&self, state: &mut DiskRoomState) {
        match self.shared.space.drop_ballast() {
            Ok(()) => {
                state.ballast = Ballast::None;
                tracing::warn!(
                    "the disk is nearly full: the ballast file is deleted to make room for what goes on"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the disk is nearly full, and the ballast file cannot be deleted")
            }
        }
        self.look(state);
        self.judge(state);
    }

    /// Looks at the disk anew, and makes the ballast again where there is room for it. Called about once a second.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        if state.ballast == Ballast::There && !self.shared.space.keeps_ballast(self.shared.head_room_bytes) {
            tracing::warn!(
                "the ballast file has been deleted or changed: it is made anew where there is room"
            );
            state.ballast = Ballast::None;
        }
        self.look(&mut state);
        self.judge(&mut state);
        if state.ballast != Ballast::None {
            return;
        }
        if state.doubted_for > 1 {
            state.doubted_for -= 1;
            return;
        }
        if !self.has_room_for_ballast(&state) {
            return;
        }
        state.ballast = Ballast::Making;
        drop(state);
        let room = self.clone();
        // It is written in full where the file system cannot just set room aside: not by the thread that decides.
        let make = move || room.make_ballast();
        if let Err(error) = std::thread::Builder::new().name("seriatim-ballast".to_owned()).spawn(make) {
            tracing::warn!(%error, "the ballast file cannot be made now");
            self.state().ballast = Ballast::None;
        }
    }

    /// Makes the ballast, if there is room for it and none yet.
    pub(crate) fn make_ballast(&self) {
        let (is_there, has_room) = {
            let state = self.state();
            (state.ballast == Ballast::There, self.has_room_for_ballast(&state))
        };
        if is_there {
            return;
        }
        // Without the lock: while it is made, free space is not looked at, and room is counted as it was before.
        let made =
            if has_room { self.shared.space.make_ballast(self.shared.head_room_bytes) } else { Ok(()) };
        let mut state = self.state();
        state.ballast = match &made {
            Ok(()) if has_room => Ballast::There,
            Ok(()) => Ballast::None,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::Unsupported) =>
            {
                tracing::warn!(%error, "there is no ballast file until the next start");
                Ballast::Barred
            }
            Err(error) => {
                tracing::warn!(%error, "the ballast file cannot be made now");
                Ballast::None
            }
        };
        let is_out_of_room = made.as_ref().is_err_and(is_out_of_room);
        if has_room && !is_out_of_room {
            state.doubted_for = 0;
        }
        self.look(&mut state);
        self.judge(&mut state);
        if is_out_of_room && self.has_room_for_ballast(&state) {
            self.doubt(&mut state, 0);
        }
    }

    /// Whether the ballast fits beside what has to stay free, as far as the file system tells.
    fn has_room_for_ballast(&self, state: &DiskRoomState) -> bool {
        let free_bytes = match state.doubted_for {
            0 => self.free(state),
            _ => self.shared.space.free().unwrap_or(0),
        };
        free_bytes >= self.roomy_from()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, DiskRoomState> {
        self.shared.state.lock()
    }

    /// Free bytes beside the ballast.
    fn free(&self, state: &DiskRoomState) -> u64 {
        let written = self.shared.written.load(Ordering::Relaxed).saturating_sub(state.written_then);
        state.free_bytes.saturating_sub(written).saturating_sub(state.promised_bytes)
    }

    /// Free bytes with the ballast.
    pub(crate) fn left(&self, state: &DiskRoomState) -> u64 {
        let ballast = if state.ballast == Ballast::There { self.shared.head_room_bytes } else { 0 };
        self.free(state).saturating_add(ballast)
    }

    pub(crate) fn look(&self, state: &mut DiskRoomState) {
        if state.ballast == Ballast::Making || state.doubted_for > 0 {
            return;
        }
        // What is written during the look is counted twice rather than not at all.
        let written_then = self.shared.written.load(Ordering::Relaxed);
        match self.shared.space.free() {
            Ok(free_bytes) => (state.free_bytes, state.written_then) = (free_bytes, written_then),
            Err(error) => tracing::warn!(%error, "free space on the disk cannot be told"),
        }
    }

    pub(crate) fn judge(&self, state: &mut DiskRoomState) {
        let left = self.left(state);
        if !state.is_full && left <= self.full_below() {
            state.is_full = true;
            tracing::warn!(
                free_bytes = left,
                head_room_bytes = self.shared.head_room_bytes,
                "the disk is nearly full: sends, schedules and queue definitions are refused; receive, settle, purge go on"
            );
        } else if state.is_full && left >= self.roomy_from() {
            state.is_full = false;
            tracing::info!(free_bytes = left, "the disk has room again: everything is accepted");
        }
    }

    /// With no more room than this, nothing new is accepted: the head room, and half of it for what is under way, so that
    /// what is new never makes the ballast go.
    pub(crate) fn full_below(&self) -> u64 {
        (self.shared.head_room_bytes / 4).saturating_mul(6)
    }

    /// With as much room as this everything is accepted again: more, so that the answer does not change all the time.
    fn roomy_from(&self) -> u64 {
        (self.shared.head_room_bytes / 4).saturating_mul(7)
    }

    /// With fewer free bytes than this a commit may not find room.
    fn scarce_below(&self) -> u64 {
        let quarter = self.shared.head_room_bytes / 4;
        (self.shared.head_room_bytes / 8).max(limits::ROOM_SCARCE_BYTES).min(quarter)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::store::space::made::HEAD_ROOM;
    use crate::engine::store::space::made::Made;
    use crate::error::OperateRefusal;

    fn room(free: u64) -> (DiskRoom, Made, Arc<AtomicU64>) {
        let (made, written) = (Made::default(), Arc::<AtomicU64>::default());
        made.set_free(free);
        let room = DiskRoom::begin(made.clone(), HEAD_ROOM, written.clone()).unwrap();
        room.make_ballast();
        (room, made, written)
    }

    #[test]
    fn nothing_new_is_admitted_into_the_head_room_and_all_is_once_there_is_room() {
        let (room, made, _) = room(4 * HEAD_ROOM);
        assert!(made.has() && room.admit(HEAD_ROOM));
        room.redeem(HEAD_ROOM);
        made.set_free(HEAD_ROOM / 2);
        room.tick();
        assert!(!room.admit(1) && room.view().is_full);
        assert!(room.admit_from_head_room(1));
        room.redeem(1);
        made.set_free(HEAD_ROOM / 2 + 1);
        assert!(!room.admit(1), "it does not change its mind for a byte");
        made.set_free(HEAD_ROOM / 4 * 3);
        assert!(room.admit(1) && !room.view().is_full);
    }

    #[test]
    fn what_is_larger_than_the_room_is_refused_and_what_is_small_goes_on() {
        let (room, _, _) = room(4 * HEAD_ROOM);
        assert!(!room.admit(4 * HEAD_ROOM));
        assert!(room.admit(1) && !room.view().is_full);
    }

    #[test]
    fn what_was_promised_and_written_since_the_last_look_counts() {
        let (room, made, written) = room(3 * HEAD_ROOM);
        assert!(room.admit(HEAD_ROOM));
        assert!(!room.admit(HEAD_ROOM), "it is promised to somebody");
        room.redeem(HEAD_ROOM);
        written.fetch_add(2 * HEAD_ROOM, Ordering::Relaxed);
        assert!(room.admit(1), "the look before a refusal finds that the file has not grown");
        made.set_free(0);
        written.fetch_add(2 * HEAD_ROOM, Ordering::Relaxed);
        assert!(!room.admit(1));
    }

    #[test]
    fn the_ballast_makes_way_for_a_commit_and_comes_back() {
        let (room, made, _) = room(4 * HEAD_ROOM);
        made.set_free(1);
        room.tick();
        room.make_way(100);
        assert!(!made.has() && !room.admit(1) && room.admit_from_head_room(1));
        room.redeem(1);
        made.set_free(HEAD_ROOM / 4);
        room.tick();
        assert!(!room.admit_from_head_room(1), "the last is for what takes nothing");
        made.set_free(HEAD_ROOM);
        room.tick();
        assert!(!made.has() && !room.admit(1));
        made.set_free(2 * HEAD_ROOM);
        assert!(room.admit(1));
        room.redeem(1);
        room.make_ballast();
        assert!(made.has() && room.admit(1));
    }

    #[test]
    fn a_backup_that_would_eat_the_head_room_is_refused() {
        let (room, made, _) = room(4 * HEAD_ROOM);
        let refusal = |free_bytes| Some(OperateRefusal::StorageFull { needed_bytes: HEAD_ROOM, free_bytes });
        let copy = room.admit_copy(Path::new("a")).map_err(drop).unwrap();
        assert_eq!(copy.check(), Ok(()));
        made.set_free(2 * HEAD_ROOM);
        assert_eq!(room.admit_copy(Path::new("b")).err(), refusal(HEAD_ROOM / 2), "another is under way");
        made.set_free(HEAD_ROOM / 2);
        assert_eq!(copy.check().err(), refusal(0), "the disk has become full meanwhile");
        drop(copy);
        made.set_free(2 * HEAD_ROOM);
        assert!(
            room.admit_copy(Path::new("b")).is_ok(),
            "what was promised to one that is over is free again"
        );
        made.set_free(HEAD_ROOM);
        assert_eq!(room.admit_copy(Path::new("b")).err(), refusal(HEAD_ROOM / 2));
    }

    #[test]
    fn a_file_is_opened_where_the_ballast_was_if_nothing_else_is_free() {
        let made = Made::default();
        *made.0.lock().unwrap() = (0, true);
        let room = DiskRoom::begin(made.clone(), HEAD_ROOM, Arc::default()).unwrap();
        assert!(!made.has() && room.view().is_full);
    }

    #[test]
    fn a_head_room_that_no_disk_has_is_never_there() {
        let made = Made::default();
        made.set_free(HEAD_ROOM);
        let room = DiskRoom::begin(made.clone(), u64::MAX, Arc::default()).unwrap();
        room.tick();
        assert!(!made.has() && room.view().is_full && !room.admit(1));
    }

    #[test]
    fn a_ballast_that_somebody_has_deleted_counts_no_longer() {
        let (room, made, _) = room(4 * HEAD_ROOM);
        made.set_free(HEAD_ROOM);
        room.tick();
        assert!(room.admit(1) && made.has(), "with the ballast there is room");
        room.redeem(1);
        *made.0.lock().unwrap() = (HEAD_ROOM, false);
        room.tick();
        assert!(!room.admit(1) && room.view().is_full, "without it there is the head room, and no more");
    }

    #[test]
    fn a_write_that_found_no_room_is_believed_until_the_ballast_can_be_made() {
        let (room, made, written) = room(9 * HEAD_ROOM);
        made.allow(0);
        assert!(room.rescue() && !made.has(), "the quota is used up, whatever is said of the disk");
        assert!(!room.admit(1) && room.view().is_full);
        assert!(room.admit_from_head_room(1), "there is what the ballast has made free");
        room.redeem(1);
        written.fetch_add(HEAD_ROOM, Ordering::Relaxed);
        assert!(!room.admit_from_head_room(1), "and no more");
        room.make_ballast();
        assert!(!made.has() && !room.admit(1) && !room.admit_from_head_room(1), "it still cannot be made");
        made.allow(9 * HEAD_ROOM);
        room.make_ballast();
        assert!(made.has() && room.admit(1));
    }

    #[test]
    fn a_disk_that_is_as_full_as_it_says_is_believed_once_it_has_room() {
        let (room, made, _) = room(9 * HEAD_ROOM);
        made.set_free(0);
        assert!(room.rescue() && !made.has() && !room.admit(1), "somebody else was quicker than every look");
        made.set_free(9 * HEAD_ROOM);
        assert!(room.admit(1), "it has room again");
    }

    #[test]
    fn a_disk_too_small_for_a_ballast_has_none_and_is_full() {
        let (room, made, _) = room(HEAD_ROOM);
        assert!(!made.has() && room.view().is_full && !room.admit(1));
    }
}
