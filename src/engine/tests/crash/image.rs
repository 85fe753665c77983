//! The content of a disk at one instant; copies share their pages.

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What is shared or copied as a whole.
pub(crate) const PAGE: usize = 4096;

type Page = [u8; PAGE];

/// The bytes of a file. A page that was never written is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    pages: Vec<Option<Arc<Page>>>,
    len: usize,
}

impl Image {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> io::Result<()> {
        if offset + out.len() > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (index, within, place) in pieces(offset, out.len()) {
            match &self.pages[index] {
                Some(page) => out[place].copy_from_slice(&page[within]),
                None => out[place].fill(0),
            }
        }
        Ok(())
    }

    /// Writes bytes; the file grows when they reach beyond its end.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        if !data.is_empty() && offset + data.len() > self.len {
            self.set_len(offset + data.len());
        }
        for (index, within, place) in pieces(offset, data.len()) {
            let page = self.pages[index].get_or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[within].copy_from_slice(&data[place]);
        }
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.pages.resize(len.div_ceil(PAGE), None);
        // What is cut off and grown again is zero.
        if let (true, Some(Some(last))) = (len < self.len && !len.is_multiple_of(PAGE), self.pages.last_mut())
        {
            Arc::make_mut(last)[len % PAGE..].fill(0);
        }
        self.len = len;
    }

    pub(crate) fn flip(&mut self, bit: usize) {
        let mut byte = [0];
        self.read(bit / 8, &mut byte).expect("a bit inside the file");
        self.write(bit / 8, &[byte[0] ^ (1 << (bit % 8))]);
    }

    /// The pages that hold anything but zeros.
    pub(crate) fn used_pages(&self) -> Vec<usize> {
        let is_used =
            |page: &Option<Arc<Page>>| page.as_ref().is_some_and(|page| page.iter().any(|b| *b != 0));
        (0..self.pages.len()).filter(|index| is_used(&self.pages[*index])).collect()
    }
}

/// The pages that a range touches: which, where in the page, and where in the range.
fn pieces(offset: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (index, within) = ((offset + done) / PAGE, (offset + done) % PAGE);
        let count = (PAGE - within).min(len - done);
        done += count;
        (count > 0).then_some((index, within..within + count, done - count..done))
    })
}

#[test]
fn a_copy_keeps_what_it_had() {
    let mut image = Image::default();
    image.write(PAGE - 2, b"abcd");
    let copy = image.clone();
    image.write(PAGE - 1, b"xy");
    image.set_len(PAGE);
    image.set_len(2 * PAGE);
    let text = |image: &Image, len: usize| {
        let mut out = vec![0; len];
        image.read(PAGE - 2, &mut out).map(|()| out)
    };
    assert_eq!(text(&copy, 4).unwrap(), b"abcd");
    assert_eq!(text(&image, 4).unwrap(), b"ax\0\0");
    assert!(text(&copy, 5).is_err(), "a read beyond the end fails");
    image.flip(8 * (PAGE - 2) + 1);
    assert_eq!(text(&image, 1).unwrap(), b"c");
    assert_eq!(image.used_pages(), [0]);
}
