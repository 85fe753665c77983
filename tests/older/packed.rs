//! A file without its empty blocks.

use std::path::Path;

const BLOCK: usize = 256;

/// The length of the file, then each block that holds anything but zeros, behind its number.
pub(crate) fn pack(file: &[u8]) -> Vec<u8> {
    let mut packed = (file.len() as u64).to_le_bytes().to_vec();
    for (number, block) in file.chunks(BLOCK).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            packed.extend(u32::try_from(number).expect("a small file").to_le_bytes());
            packed.extend(block);
            packed.resize(packed.len() + BLOCK - block.len(), 0);
        }
    }
    packed
}

pub(crate) fn unpack(packed: &[u8]) -> Vec<u8> {
    let (len, blocks) = packed.split_first_chunk::<8>().expect("a length");
    let mut file = vec![0; usize::try_from(u64::from_le_bytes(*len)).expect("a small file")];
    for block in blocks.chunks(4 + BLOCK) {
        let (number, bytes) = block.split_first_chunk::<4>().expect("a block's number");
        let at = BLOCK * usize::try_from(u32::from_le_bytes(*number)).expect("a small file");
        let end = file.len().min(at + BLOCK);
        file[at..end].copy_from_slice(&bytes[..end - at]);
    }
    file
}

/// Puts the file of this name at `target`.
pub(crate) fn place(name: &str, target: &Path) {
    std::fs::write(target, unpack(&read(&format!("{name}.packed")))).expect("the folder can be written");
}

/// A file beside this one.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
