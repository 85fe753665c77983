//! Records most of whose fields are blank most of the time: as bytes, they say which fields follow, and only those.
//!
//! A record is its fields that are always there, a number whose bits say which of the others are not blank, and those. A
//! field that is added takes the next bit; no bit is used for another field, as long as its format lives.

/// Makes a record's bytes sparse: `always` fields first, then those of the `sparse` ones that are not their default. A record
/// has a `blank` of its `always` fields; a field may be of a part, which is named before it.
macro_rules! sparse_record {
    ($record:ident { always: [$($always:ident: $always_type:ty),*], sparse: [$($([$part:ident])? $sparse:ident: $sparse_type:ty),* $(,)?] }) => {
        const _: () = {
            /// The bits of the fields, in their order, and behind them how many there are.
            #[expect(non_camel_case_types, reason = "named as the fields are")]
            enum Bit { $($sparse,)* Count }

            const _: () = assert!(Bit::Count as usize <= u32::BITS as usize, "a field has its bit");

            impl $record {
                #[inline]
                fn present_fields(&self) -> u32 {
                    0 $(| u32::from($crate::engine::rules::sparse::is_present!(self, $($part)? $sparse: $sparse_type)) << Bit::$sparse as u32)*
                }
            }

            impl serde::Serialize for $record {
                #[inline]
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    use serde::ser::SerializeTuple;

                    let present = self.present_fields();
                    let mut fields = serializer.serialize_tuple(Bit::Count as usize + 1)?;
                    $(fields.serialize_element(&self.$always)?;)*
                    fields.serialize_element(&present)?;
                    $(if present & 1 << Bit::$sparse as u32 != 0 {
                        fields.serialize_element(&self$(.$part)?.$sparse)?;
                    })*
                    fields.end()
                }
            }

            impl<'de> serde::Deserialize<'de> for $record {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$record, D::Error> {
                    struct Fields;

                    impl<'de> serde::de::Visitor<'de> for Fields {
                        type Value = $record;

                        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                            f.write_str(stringify!($record))
                        }

                        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut fields: A) -> Result<$record, A::Error> {
                            use serde::de::Error;

                            let missing = || A::Error::custom("a field is missing");
                            $(let $always: $always_type = fields.next_element()?.ok_or_else(missing)?;)*
                            let present: u32 = fields.next_element()?.ok_or_else(missing)?;
                            if present >> Bit::Count as u32 != 0 {
                                return Err(A::Error::custom("a field is not known"));
                            }
                            let mut record = $record::blank($($always),*);
                            $(if present & 1 << Bit::$sparse as u32 != 0 {
                                record$(.$part)?.$sparse = fields.next_element()?.ok_or_else(missing)?;
                            })*
                            Ok(record)
                        }
                    }

                    let most = [$(stringify!($always),)* $(stringify!($sparse),)*].len() + 1;
                    deserializer.deserialize_tuple(most, Fields)
                }
            }
        };
    };
}

/// Whether a field is not blank: none is of a part of which nothing was set.
macro_rules! is_present {
    ($record:ident, $part:ident $field:ident: $type:ty) => {
        $record.$part.if_set().is_some_and(|part| part.$field != <$type>::default())
    };
    ($record:ident, $field:ident: $type:ty) => {
        $record.$field != <$type>::default()
    };
}

pub(crate) use is_present;
pub(crate) use sparse_record;

#[cfg(test)]
mod tests {
    fn encode(sample: &Sample) -> Vec<u8> {
        postcard::to_stdvec(sample).unwrap()
    }

    fn decode(bytes: &[u8]) -> Option<Sample> {
        postcard::from_bytes(bytes).ok()
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Sample {
        id: u64,
        count: u64,
        name: Option<String>,
        is_last: bool,
    }

    impl Sample {
        fn blank(id: u64) -> Sample {
            Sample { id, ..Sample::default() }
        }
    }

    sparse_record!(Sample { always: [id: u64], sparse: [count: u64, name: Option<String>, is_last: bool] });

    #[test]
    fn what_is_not_blank_comes_back_and_what_is_blank_takes_no_byte() {
        for fields in 0..8_u8 {
            let sample = Sample {
                id: 7,
                count: if fields & 1 == 0 { 0 } else { 9 },
                name: (fields & 2 != 0).then(|| "x".to_owned()),
                is_last: fields & 4 != 0,
            };
            let bytes = encode(&sample);
            assert_eq!(decode(&bytes), Some(sample));
            let of_fields = u32::from(fields & 1) + 3 * u32::from(fields >> 1 & 1) + u32::from(fields >> 2);
            assert_eq!(bytes.len(), 2 + of_fields as usize);
        }
    }

    #[test]
    fn a_record_that_ends_too_early_or_has_a_field_of_a_later_version_makes_no_sense() {
        let whole = Sample { id: 7, count: 9, name: Some("x".to_owned()), is_last: true };
        let mut bytes = encode(&whole);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]), None, "{len} bytes");
        }
        bytes[1] |= 8;
        assert_eq!(decode(&bytes), None, "a bit that no field has");
    }
}
