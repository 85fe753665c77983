//! Values of types that clients of .NET add to those of AMQP, or say in a way of their own, in our words.

use std::ops::RangeInclusive;

use crate::amqp::Value;
use crate::api::WireTime;
use crate::clock::Timestamp;
use crate::header::PropertyValue;

/// Ticks of .NET (100 ns since year 1) at the Unix epoch.
pub(crate) const TICKS_AT_EPOCH: i64 = 621_355_968_000_000_000;

const TICKS_A_SECOND: u64 = 10_000_000;

const TICKS_A_MILLISECOND: i64 = 10_000;

/// Exponents of decimals as the AMQP library of Microsoft wrote them for years: without two of their bits, which it never missed
/// when it read them.
const SHORT_EXPONENTS: RangeInclusive<i32> = -4_636..=-4_608;

/// By how much these are too small.
const SHORT_BY: i32 = 4_608;

/// A value under a descriptor; nothing when there is no word for it.
pub(crate) fn described(descriptor: &Value, value: &Value) -> Option<PropertyValue> {
    Some(match descriptor.as_str()? {
        "com.microsoft:timespan" => PropertyValue::Text(span_text(value.as_i64()?)),
        "com.microsoft:datetime-offset" => {
            instant(value.as_i64()?.saturating_sub(TICKS_AT_EPOCH).div_euclid(TICKS_A_MILLISECOND))
        }
        "com.microsoft:uri" => PropertyValue::from(value.as_str()?),
        _ => return None,
    })
}

/// An instant in milliseconds since 1970; before it no text of ours says one.
pub(crate) fn instant(millis: i64) -> PropertyValue {
    match u64::try_from(millis) {
        Ok(millis) => PropertyValue::Text(WireTime(Timestamp::from_millis(millis)).to_string()),
        Err(_) => PropertyValue::Integer(millis),
    }
}

/// A span of time as .NET writes it in documents.
pub(crate) fn span_text(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let (whole, rest) = (ticks.unsigned_abs() / TICKS_A_SECOND, ticks.unsigned_abs() % TICKS_A_SECOND);
    let part = |count: u64, unit: &str| if count > 0 { format!("{count}{unit}") } else { String::new() };
    let seconds = match rest {
        0 => part(whole % 60, "S"),
        rest => format!("{}S", format!("{}.{rest:07}", whole % 60).trim_end_matches('0')),
    };
    let days = part(whole / 86_400, "D");
    let time = format!("{}{}{seconds}", part(whole / 3_600 % 24, "H"), part(whole / 60 % 60, "M"));
    match (days.is_empty(), time.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (false, true) => format!("{sign}P{days}"),
        _ => format!("{sign}P{days}T{time}"),
    }
}

/// The nearest number to a decimal of 4, 8 or 16 bytes, whose digits are a whole number in binary.
pub(crate) fn decimal(bytes: &[u8]) -> Option<f64> {
    let (exponent_bits, bias, digits_max) = match bytes.len() {
        4 => (8, 101, 9_999_999),
        8 => (10, 398, 9_999_999_999_999_999),
        16 => (14, 6_176, 10_u128.pow(34) - 1),
        _ => return None,
    };
    let sign = if bytes[0] & 0x80 == 0 { "" } else { "-" };
    match bytes[0] & 0x7c {
        0x7c => return Some(f64::NAN),
        0x78 => return format!("{sign}inf").parse().ok(),
        _ => {}
    }
    let written = bytes.iter().fold(0_u128, |all, byte| (all << 8) | u128::from(*byte));
    // Where the digits need one bit more than there is room for, their first three are known.
    let is_long = bytes[0] & 0x60 == 0x60;
    let digit_bits = 8 * bytes.len() - 1 - exponent_bits - if is_long { 2 } else { 0 };
    let first = if is_long { 1_u128 << (digit_bits + 2) } else { 0 };
    let digits = first | (written & ((1_u128 << digit_bits) - 1));
    // What is more than its digits can say is zero.
    let digits = if digits > digits_max { 0 } else { digits };
    let exponent = (written >> digit_bits) & ((1_u128 << exponent_bits) - 1);
    let exponent = i32::try_from(exponent).ok()? - bias;
    let exponent = if SHORT_EXPONENTS.contains(&exponent) { exponent + SHORT_BY } else { exponent };
    format!("{sign}{digits}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decimal of 16 bytes of a sign and an exponent in two bytes, and digits.
    fn long_decimal(head: [u8; 2], digits: u64) -> Option<f64> {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&head);
        bytes[8..].copy_from_slice(&digits.to_be_bytes());
        decimal(&bytes)
    }

    #[test]
    fn a_decimal_is_the_number_nearest_to_it() {
        assert_eq!(long_decimal([0x30, 0x3e], 125), Some(12.5));
        assert_eq!(long_decimal([0xb0, 0x3e], 125), Some(-12.5));
        assert_eq!(long_decimal([0x30, 0x40], u64::MAX), Some(18_446_744_073_709_551_615.0));
        assert_eq!(long_decimal([0x30, 0x46], 7), Some(7_000.0));
        assert_eq!(decimal(&[3; 16]), Some(0.0), "it is smaller than any number");
        assert_eq!(decimal(&0x3180_0001_u32.to_be_bytes()), Some(0.01));
        assert_eq!(decimal(&0x6cb8_967f_u32.to_be_bytes()), Some(9_999_999.0));
        assert_eq!(decimal(&0x31a0_0000_0000_007d_u64.to_be_bytes()), Some(12.5));
        assert_eq!(decimal(&0x6c73_86f2_6fc0_ffff_u64.to_be_bytes()), Some(9_999_999_999_999_999.0));
    }

    #[test]
    fn a_decimal_is_understood_as_dotnet_wrote_it_for_years() {
        assert_eq!(long_decimal([0x0c, 0x3e], 125), Some(12.5));
        assert_eq!(long_decimal([0x8c, 0x40], 7), Some(-7.0));
        assert_eq!(long_decimal([0x0c, 0x08], 10_u64.pow(19)), Some(1e-9), "the most places there are");
    }

    #[test]
    fn what_is_no_finite_decimal_is_none_or_no_finite_number() {
        assert_eq!(decimal(&[0x78, 0, 0, 0]), Some(f64::INFINITY));
        assert_eq!(decimal(&[0xf8, 0, 0, 0, 0, 0, 0, 0]), Some(f64::NEG_INFINITY));
        assert!(decimal(&[0x7c; 16]).is_some_and(f64::is_nan));
        assert_eq!(decimal(&[0x6f; 16]), Some(0.0), "it has more digits than there are");
        assert_eq!(decimal(&[0; 5]), None);
        assert_eq!(decimal(&[]), None);
    }

    #[test]
    fn a_span_an_instant_and_an_address_are_texts() {
        let text = |descriptor: &'static str, value: Value| described(&Value::symbol(descriptor), &value);
        for (ticks, span) in [
            (0, "PT0S"),
            (36_000_000_000, "PT1H"),
            (-5_000_000, "-PT0.5S"),
            (864_000_000_000, "P1D"),
            (864_600_000_001, "P1DT1M0.0000001S"),
            (i64::MAX, "P10675199DT2H48M5.4775807S"),
            (i64::MIN, "-P10675199DT2H48M5.4775808S"),
        ] {
            assert_eq!(text("com.microsoft:timespan", Value::Long(ticks)), Some(span.into()));
        }
        for (ticks, at) in [
            (TICKS_AT_EPOCH + 10_009_999, "1970-01-01T00:00:01.000Z".into()),
            (TICKS_AT_EPOCH - 1, PropertyValue::Integer(-1)),
            (i64::MIN, PropertyValue::Integer(i64::MIN.div_euclid(10_000))),
        ] {
            assert_eq!(text("com.microsoft:datetime-offset", Value::Long(ticks)), Some(at));
        }
        assert_eq!(text("com.microsoft:uri", Value::from("urn:a")), Some("urn:a".into()));
        for (descriptor, value) in [
            ("com.microsoft:timespan", Value::from("PT1H")),
            ("com.microsoft:uri", Value::Long(7)),
            ("com.microsoft:else", Value::Long(7)),
        ] {
            assert_eq!(text(descriptor, value), None);
        }
        assert_eq!(described(&Value::Ulong(7), &Value::Long(7)), None);
    }
}
