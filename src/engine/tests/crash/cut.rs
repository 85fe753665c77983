//! What is left on a disk after a power cut: all that was synced, and of the rest whatever the mode says.

use crate::engine::tests::crash::disk::Op;
use crate::engine::tests::crash::image::Image;
use crate::engine::tests::crash::image::PAGE;
use crate::engine::tests::crash::random::Random;

/// What disks write as a whole.
const SECTOR: usize = 512;

/// What becomes of the operations that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Nothing,
    All,
    /// A random part of the operations.
    Some,
    /// A random part of the sectors of each write.
    TornSectors,
    /// A random range of the bytes of each write.
    TornBytes,
    /// Only what was written to the first page.
    HeaderOnly,
    /// Everything but what was written to the first page.
    HeaderLast,
    AllButOne,
}

impl Mode {
    pub(crate) const EVERY: [Mode; 8] = [
        Mode::Nothing,
        Mode::All,
        Mode::Some,
        Mode::TornSectors,
        Mode::TornBytes,
        Mode::HeaderOnly,
        Mode::HeaderLast,
        Mode::AllButOne,
    ];
}

/// Goes along a log of operations; at any of them the power can be cut.
pub(crate) struct Cutter<'l> {
    log: &'l [Op],
    /// How many operations were done before the cut.
    at: usize,
    /// The first operation that is not on disk for certain.
    unsynced: usize,
    certain: Image,
    /// One in so many syncs is believed; 1 for an honest disk.
    honest_in: u64,
}

impl<'l> Cutter<'l> {
    pub(crate) fn new(base: Image, log: &'l [Op]) -> Cutter<'l> {
        Cutter { log, at: 0, unsynced: 0, certain: base, honest_in: 1 }
    }

    /// A disk that says "synced" and has not, except once in so many times.
    pub(crate) fn lying(base: Image, log: &'l [Op], honest_in: u64) -> Cutter<'l> {
        Cutter { honest_in, ..Cutter::new(base, log) }
    }

    /// Moves the cut behind the next operation; false at the end of the log.
    pub(crate) fn advance(&mut self, random: &mut Random) -> bool {
        let Some(op) = self.log.get(self.at) else { return false };
        self.at += 1;
        if matches!(op, Op::Sync) && random.below(self.honest_in) == 0 {
            for op in &self.log[self.unsynced..self.at] {
                apply(&mut self.certain, op);
            }
            self.unsynced = self.at;
        }
        true
    }

    /// Whether all modes would leave the same.
    pub(crate) fn is_settled(&self) -> bool {
        self.log[self.unsynced..self.at].iter().all(|op| matches!(op, Op::Sync))
    }

    /// What the cut leaves.
    pub(crate) fn image(&self, mode: Mode, random: &mut Random) -> Image {
        let mut image = self.certain.clone();
        let pending = &self.log[self.unsynced..self.at];
        let left_out = random.below(pending.len().max(1) as u64);
        let percent = random.pick(&[10, 50, 90]);
        for (index, op) in pending.iter().enumerate() {
            let is_header = matches!(op, Op::Write { offset, .. } if *offset < PAGE);
            let stays = match mode {
                Mode::Nothing => false,
                Mode::All | Mode::TornSectors | Mode::TornBytes => true,
                Mode::Some => random.chance(percent),
                Mode::HeaderOnly => is_header,
                Mode::HeaderLast => !is_header,
                Mode::AllButOne => index as u64 != left_out,
            };
            match (mode, op) {
                _ if !stays => {}
                (Mode::TornSectors, Op::Write { offset, data }) => {
                    write_sectors(&mut image, *offset, data, percent, random);
                }
                (Mode::TornBytes, Op::Write { offset, data }) => {
                    write_range(&mut image, *offset, data, percent, random);
                }
                (Mode::TornSectors | Mode::TornBytes, _) if !random.chance(percent) => {}
                _ => apply(&mut image, op),
            }
        }
        image
    }
}

fn apply(image: &mut Image, op: &Op) {
    match op {
        Op::Write { offset, data } => image.write(*offset, data),
        Op::SetLen(len) => image.set_len(*len),
        Op::Sync => {}
    }
}

fn write_sectors(image: &mut Image, offset: usize, data: &[u8], percent: u64, random: &mut Random) {
    let mut from = 0;
    while from < data.len() {
        let to = data.len().min(from + SECTOR - (offset + from) % SECTOR);
        if random.chance(percent) {
            image.write(offset + from, &data[from..to]);
        }
        from = to;
    }
}

fn write_range(image: &mut Image, offset: usize, data: &[u8], percent: u64, random: &mut Random) {
    if random.chance(percent) {
        return image.write(offset, data);
    }
    let mut bound = || usize::try_from(random.below(data.len() as u64 + 1)).expect("a small number");
    let (one, other) = (bound(), bound());
    let (from, to) = (one.min(other), one.max(other));
    image.write(offset + from, &data[from..to]);
}

#[test]
fn what_was_synced_survives_every_mode_and_the_rest_only_some() {
    let write = |offset: usize, text: &str| Op::Write { offset, data: text.as_bytes().into() };
    let log = [write(0, "aa"), write(PAGE, "bb"), Op::Sync, write(0, "cc"), write(PAGE, "dd")];
    let random = &mut Random::new(1);
    let mut cutter = Cutter::new(Image::default(), &log);
    while cutter.advance(random) {}
    let text = |image: &Image| {
        let mut out = [0; 4];
        image.read(0, &mut out[..2]).unwrap();
        image.read(PAGE, &mut out[2..]).unwrap();
        String::from_utf8(out.to_vec()).unwrap()
    };
    assert_eq!(text(&cutter.image(Mode::Nothing, random)), "aabb");
    assert_eq!(text(&cutter.image(Mode::All, random)), "ccdd");
    assert_eq!(text(&cutter.image(Mode::HeaderOnly, random)), "ccbb");
    assert_eq!(text(&cutter.image(Mode::HeaderLast, random)), "aadd");
    let torn: std::collections::BTreeSet<String> =
        (0..400).map(|_| text(&cutter.image(Mode::TornBytes, random))).collect();
    assert_eq!(torn.len(), 16, "every mix of old and new bytes: {torn:?}");
    let mut lied_to = Cutter::lying(Image::default(), &log, u64::MAX);
    while lied_to.advance(random) {}
    assert_eq!(lied_to.image(Mode::Nothing, random).len(), 0);
}
