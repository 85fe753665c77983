//! Puts records behind bytes, in postcard's format. Postcard reads them; writing them is on the way of every message several times
//! over: small numbers are put down where they are met, and others as one word.
//!
//! Source of the format: <https://postcard.jamesmunns.com/wire-format>.

use serde::Serialize;
use serde::ser;

/// Bits of a number that eight bytes have, seven in each.
const WORD_BITS: u32 = 56;

/// Puts a record behind bytes.
pub(crate) struct Encoder<'b>(pub(crate) &'b mut Vec<u8>);

type EncodeResult = Result<(), postcard::Error>;

impl Encoder<'_> {
    #[inline]
    fn put(&mut self, byte: u8) -> EncodeResult {
        self.0.push(byte);
        Ok(())
    }

    /// A number: seven bits a byte, the lowest first, and a bit in each byte that says whether another one follows.
    #[inline(always)]
    fn put_number(&mut self, number: u64) -> EncodeResult {
        // Most are small: these are put down where they are met, and only the others are worth a call.
        match number {
            0..0x80 => self.0.push(number as u8),
            0x80..0x4000 => self.0.extend_from_slice(&[number as u8 | 0x80, (number >> 7) as u8]),
            _ => self.put_word(number),
        }
        Ok(())
    }

    #[inline(never)]
    fn put_word(&mut self, number: u64) {
        if number >> WORD_BITS > 0 {
            return self.put_large(number);
        }
        // The bytes of one word: in each half, then quarter, then eighth of it the upper part moves up, to leave room for the bits that
        // say what follows.
        let word = (number & 0x0000_0000_0FFF_FFFF) | (number & 0x00FF_FFFF_F000_0000) << 4;
        let word = (word & 0x0000_3FFF_0000_3FFF) | (word & 0x0FFF_C000_0FFF_C000) << 2;
        let word = (word & 0x007F_007F_007F_007F) | (word & 0x3F80_3F80_3F80_3F80) << 1;
        let unused = word.leading_zeros() / u8::BITS;
        let goes_on = 0x0080_8080_8080_8080 >> (unused * u8::BITS);
        self.0.extend_from_slice(&(word | goes_on).to_le_bytes());
        self.0.truncate(self.0.len() - unused as usize);
    }

    #[cold]
    fn put_large(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number with a sign: the sign is its lowest bit.
    #[inline]
    fn put_signed(&mut self, number: i64) -> EncodeResult {
        self.put_number((number << 1 ^ number >> 63).cast_unsigned())
    }

    #[inline]
    fn put_len(&mut self, len: Option<usize>) -> EncodeResult {
        self.put_number(len.ok_or(postcard::Error::SerializeSeqLengthUnknown)? as u64)
    }
}

/// Says how parts of one kind are put: as the part itself, without its name if it has one.
macro_rules! part_by_part {
    ($($kind:ident { $put:ident($($name:ty)?) })*) => {
        $(impl ser::$kind for &mut Encoder<'_> {
            type Ok = ();
            type Error = postcard::Error;

            #[inline]
            fn $put<T: Serialize + ?Sized>(&mut self, $(_: $name,)? part: &T) -> EncodeResult {
                part.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> EncodeResult {
                Ok(())
            }
        })*
    };
}

part_by_part! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeStruct { serialize_field(&'static str) }
    SerializeStructVariant { serialize_field(&'static str) }
}

impl ser::SerializeMap for &mut Encoder<'_> {
    type Ok = ();
    type Error = postcard::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> EncodeResult {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> EncodeResult {
        value.serialize(&mut **self)
    }

    fn end(self) -> EncodeResult {
        Ok(())
    }
}

/// Says how values are put that are numbers.
macro_rules! numbers {
    ($($name:ident($number:ty) = $put:ident;)*) => {
        $(#[inline]
        fn $name(self, number: $number) -> EncodeResult {
            self.$put(number.into())
        })*
    };
}

impl<'e, 'b> ser::Serializer for &'e mut Encoder<'b> {
    type Ok = ();
    type Error = postcard::Error;
    type SerializeSeq = &'e mut Encoder<'b>;
    type SerializeTuple = &'e mut Encoder<'b>;
    type SerializeTupleStruct = &'e mut Encoder<'b>;
    type SerializeTupleVariant = &'e mut Encoder<'b>;
    type SerializeMap = &'e mut Encoder<'b>;
    type SerializeStruct = &'e mut Encoder<'b>;
    type SerializeStructVariant = &'e mut Encoder<'b>;

    numbers! {
        serialize_bool(bool) = put;
        serialize_u8(u8) = put;
        serialize_u16(u16) = put_number;
        serialize_u32(u32) = put_number;
        serialize_u64(u64) = put_number;
        serialize_i16(i16) = put_signed;
        serialize_i32(i32) = put_signed;
        serialize_i64(i64) = put_signed;
    }

    fn serialize_i8(self, number: i8) -> EncodeResult {
        self.put(number.cast_unsigned())
    }

    fn serialize_f32(self, number: f32) -> EncodeResult {
        self.0.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn serialize_f64(self, number: f64) -> EncodeResult {
        self.0.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, letter: char) -> EncodeResult {
        self.serialize_str(letter.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> EncodeResult {
        self.serialize_bytes(text.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> EncodeResult {
        self.put_number(bytes.len() as u64)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> EncodeResult {
        self.put(0)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> EncodeResult {
        self.put(1)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> EncodeResult {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> EncodeResult {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> EncodeResult {
        self.put_number(variant.into())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> EncodeResult {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> EncodeResult {
        self.put_number(variant.into())?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, postcard::Error> {
        self.put_len(len)?;
        Ok(self)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, postcard::Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, postcard::Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, postcard::Error> {
        self.put_number(variant.into())?;
        Ok(self)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, postcard::Error> {
        self.put_len(len)?;
        Ok(self)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, postcard::Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, postcard::Error> {
        self.put_number(variant.into())?;
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Every kind of value that a record can have.
    #[derive(Debug, Serialize)]
    struct Everything {
        unsigned: (bool, u8, u16, u32, u64),
        signed: (i8, i16, i32, i64),
        floats: (f32, f64),
        texts: (char, String, &'static str),
        nothing: (),
        unit: Unit,
        newtype: Newtype,
        pair: Pair,
        optional: Option<u64>,
        list: Vec<u16>,
        map: BTreeMap<u8, String>,
        variants: [Variant; 4],
    }

    #[derive(Debug, Serialize)]
    struct Unit;

    #[derive(Debug, Serialize)]
    struct Newtype(u32);

    #[derive(Debug, Serialize)]
    struct Pair(u8, u64);

    #[derive(Debug, Serialize)]
    enum Variant {
        Plain,
        Of(u64),
        Two(u8, i64),
        Fields { text: String, number: Option<i32> },
    }

    fn bytes_of(value: &impl Serialize) -> Vec<u8> {
        let mut bytes = b"before".to_vec();
        value.serialize(&mut Encoder(&mut bytes)).unwrap();
        bytes.split_off(6)
    }

    #[test]
    fn numbers_of_every_length_are_put_as_postcard_puts_them() {
        for bits in 0..=u64::BITS {
            let largest = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
            for number in [largest, largest.wrapping_add(1), largest & 0xAAAA_AAAA_AAAA_AAAA, largest / 3] {
                assert_eq!(bytes_of(&number), postcard::to_stdvec(&number).unwrap(), "{number:#x}");
                let signed = number.cast_signed();
                assert_eq!(bytes_of(&signed), postcard::to_stdvec(&signed).unwrap(), "{signed}");
            }
        }
    }

    proptest! {
        #[test]
        fn records_are_put_as_postcard_puts_them(
            unsigned in any::<(bool, u8, u16, u32, u64)>(),
            signed in any::<(i8, i16, i32, i64)>(),
            floats in any::<(f32, f64)>(),
            (letter, text) in any::<(char, String)>(),
            optional in any::<Option<u64>>(),
            list in any::<Vec<u16>>(),
            map in any::<BTreeMap<u8, String>>(),
            number in any::<Option<i32>>(),
        ) {
            let variants = [
                Variant::Plain,
                Variant::Of(unsigned.4),
                Variant::Two(unsigned.1, signed.3),
                Variant::Fields { text: text.clone(), number },
            ];
            let everything = Everything {
                unsigned,
                signed,
                floats,
                texts: (letter, text, "fixed"),
                nothing: (),
                unit: Unit,
                newtype: Newtype(unsigned.3),
                pair: Pair(unsigned.1, unsigned.4),
                optional,
                list,
                map,
                variants,
            };
            prop_assert_eq!(bytes_of(&everything), postcard::to_stdvec(&everything).unwrap());
        }
    }
}
