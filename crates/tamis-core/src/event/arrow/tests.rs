//! Arrow columns of every type, and that rows of a batch equal the same events written as JSON.

use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;

use super::*;
use crate::event::{Value, ValueRef, json};

fn terms(names: &[&str]) -> Terms {
    let mut terms = Terms::default();
    for name in names {
        terms.intern(name);
    }
    terms
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// All rows of one column, read as the attribute `x`.
fn read(array: impl Array + 'static) -> Vec<Value> {
    try_read(Arc::new(array), None).unwrap()
}

fn try_read(array: ArrayRef, schema: Option<&Schema>) -> Result<Vec<Value>, EventError> {
    let batch = batch(vec![("x", array)]);
    let events = ArrowEvents::new(&batch, &terms(&["x"]), schema)?;
    Ok((0..events.len()).map(|row| value(&events.event(row), TermId(0))).collect())
}

fn first_unreadable(column: ArrayRef) -> Option<EventError> {
    let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
    let mut terms = Terms::default();
    terms.intern("x");
    ArrowEvents::new(&batch, &terms, None).unwrap().unreadable().first
}

/// `Null` for an absent attribute.
fn value(event: &Event<'_>, attribute: TermId) -> Value {
    event.get(attribute).map_or(Value::Null, ValueRef::to_owned)
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

#[test]
fn numbers_and_booleans_keep_their_value() {
    assert_eq!(read(BooleanArray::from(vec![Some(true), None])), [Value::Bool(true), Value::Null]);
    assert_eq!(read(Int8Array::from(vec![Some(-3), None])), [Value::Int(-3), Value::Null]);
    assert_eq!(read(Int16Array::from(vec![-300])), [Value::Int(-300)]);
    assert_eq!(read(Int32Array::from(vec![-70_000])), [Value::Int(-70_000)]);
    assert_eq!(read(Int64Array::from(vec![i64::MIN])), [Value::Int(i64::MIN)]);
    assert_eq!(read(UInt8Array::from(vec![255])), [Value::Int(255)]);
    assert_eq!(read(UInt16Array::from(vec![65_535])), [Value::Int(65_535)]);
    assert_eq!(read(UInt32Array::from(vec![u32::MAX])), [Value::Int(u32::MAX as i64)]);
    assert_eq!(read(UInt64Array::from(vec![i64::MAX as u64])), [Value::Int(i64::MAX)]);
    assert_eq!(read(Float32Array::from(vec![0.5])), [Value::Float(0.5)]);
    assert_eq!(read(Float64Array::from(vec![f64::NAN])), [Value::Float(f64::NAN)]);
    let half = <Float16Type as ArrowPrimitiveType>::Native::from_f32(1.5);
    assert_eq!(read(Float16Array::from(vec![half])), [Value::Float(1.5)]);
    assert_eq!(read(NullArray::new(2)), [Value::Null, Value::Null]);
}

#[test]
fn an_unsigned_integer_that_does_not_fit_is_named_unless_it_is_null() {
    let column = UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]);
    assert_eq!(read(column.clone()), [Value::Int(1), Value::Null, Value::Null]);
    let error = first_unreadable(Arc::new(column)).unwrap();
    let message = "attribute `x`: row 2: 18446744073709551615 does not fit in a signed 64-bit integer";
    assert_eq!(error.to_string(), message);
    let garbage_under_null =
        UInt64Array::new(vec![u64::MAX, 5].into(), Some(NullBuffer::from(vec![false, true])));
    assert_eq!(read(garbage_under_null), [Value::Null, Value::Int(5)]);
}

#[test]
fn strings_of_every_layout() {
    let long = "a string that is longer than twelve bytes";
    let expected = [text("é"), Value::Null, text(long)];
    let strings = vec![Some("é"), None, Some(long)];
    assert_eq!(read(StringArray::from(strings.clone())), expected);
    assert_eq!(read(LargeStringArray::from(strings.clone())), expected);
    assert_eq!(read(StringViewArray::from(strings.clone())), expected);
    assert_eq!(read(strings.iter().copied().collect::<DictionaryArray<Int8Type>>()), expected);
    assert_eq!(read(strings.iter().copied().collect::<DictionaryArray<UInt32Type>>()), expected);
    let all_null: DictionaryArray<Int32Type> = [None::<&str>, None].into_iter().collect();
    assert_eq!(read(all_null), [Value::Null, Value::Null]);
    let null_in_dictionary = DictionaryArray::new(
        Int32Array::from(vec![0, 1]),
        Arc::new(StringArray::from(vec![None, Some("b")])),
    );
    assert_eq!(read(null_in_dictionary), [Value::Null, text("b")]);
}

#[test]
fn strings_are_not_copied() {
    let strings = StringArray::from(vec!["plain"]);
    let batch = batch(vec![("x", Arc::new(strings.clone()))]);
    let events = ArrowEvents::new(&batch, &terms(&["x"]), None).unwrap();
    let Some(ValueRef::Str(text)) = events.event(0).get(TermId(0)) else { panic!() };
    assert_eq!(text.as_ptr(), strings.value_data().as_ptr());
}

#[test]
fn run_ends_are_decoded_also_when_sliced() {
    let ends = Int32Array::from(vec![2, 3, 6]);
    let runs = RunArray::try_new(&ends, &StringArray::from(vec![Some("a"), None, Some("c")])).unwrap();
    let (a, c) = (text("a"), text("c"));
    assert_eq!(read(runs.clone()), [a.clone(), a.clone(), Value::Null, c.clone(), c.clone(), c.clone()]);
    assert_eq!(read(runs.slice(1, 3)), [a, Value::Null, c]);
}

#[test]
fn timestamps_of_every_unit_are_utc_microseconds() {
    let at = |micros| Value::Timestamp(micros);
    assert_eq!(read(TimestampSecondArray::from(vec![Some(-2), None])), [at(-2_000_000), Value::Null]);
    assert_eq!(read(TimestampMillisecondArray::from(vec![3]).with_timezone("+02:00")), [at(3000)]);
    assert_eq!(read(TimestampMicrosecondArray::from(vec![i64::MIN])), [at(i64::MIN)]);
    assert_eq!(read(TimestampNanosecondArray::from(vec![1999, -1])), [at(1), at(-1)]);
    assert_eq!(read(Date32Array::from(vec![1, -1])), [at(86_400_000_000), at(-86_400_000_000)]);
    assert_eq!(read(Date64Array::from(vec![86_400_000])), [at(86_400_000_000)]);
    for overflow in [
        Arc::new(TimestampSecondArray::from(vec![0, i64::MAX])) as ArrayRef,
        Arc::new(TimestampMillisecondArray::from(vec![0, i64::MIN])),
        Arc::new(Date32Array::from(vec![0, i32::MAX])),
        Arc::new(Date64Array::from(vec![0, i64::MAX])),
    ] {
        let error = first_unreadable(overflow).unwrap();
        assert_eq!((error.path.as_deref(), error.row), (Some("x"), Some(1)), "{error}");
    }
}

#[test]
fn decimals_are_exact() {
    let exact = |text: &str| Value::decimal(text).unwrap();
    let decimals =
        vec![Some(10), None, Some(-123), Some(123_456_789_012_345_678_901), Some(90_071_992_547_409_921)];
    let decimals = Decimal128Array::from(decimals).with_precision_and_scale(38, 2).unwrap();
    let expected = [
        Value::Float(0.1),
        Value::Null,
        Value::Float(-1.23),
        exact("1234567890123456789.01"),
        exact("900719925474099.21"),
    ];
    assert!(expected[3..].iter().all(|value| matches!(value, Value::Decimal(_))));
    assert_eq!(read(decimals), expected);
    let whole = Decimal128Array::from(vec![i64::MAX as i128, i64::MAX as i128 + 1, i128::MAX / 2]);
    let whole = whole.with_precision_and_scale(38, 0).unwrap();
    let most = exact("85070591730234615865843651857942052863");
    assert_eq!(read(whole), [Value::Int(i64::MAX), Value::Float(2f64.powi(63)), most]);
    let hundreds = Decimal32Array::from(vec![7]).with_precision_and_scale(5, -2).unwrap();
    assert_eq!(read(hundreds), [Value::Int(700)]);
    let wide = vec![i256::from_i128(-15), i256::MAX, i256::MIN];
    let wide = Decimal256Array::from(wide).with_precision_and_scale(76, 76).unwrap();
    let digits = "57896044618658097711785492504343953926634992332820282019728792003956564819967";
    let widest = |sign: &str, digits: &str| exact(&format!("{sign}{}.{}", &digits[..1], &digits[1..]));
    let least = widest("-", &digits.replace("19967", "19968"));
    assert_eq!(read(wide), [exact("-15e-76"), widest("", digits), least]);
    let tiny = Decimal64Array::from(vec![3]).with_precision_and_scale(18, 18).unwrap();
    assert_eq!(read(tiny), [Value::Float(3e-18)]);
}

#[test]
fn lists_of_every_layout_are_arrays() {
    let ints = |items: &[i64]| Value::Array(items.iter().map(|i| Value::Int(*i)).collect());
    let rows = vec![Some(vec![Some(1), Some(2)]), None, Some(vec![]), Some(vec![Some(3)])];
    let expected = [ints(&[1, 2]), Value::Null, ints(&[]), ints(&[3])];
    assert_eq!(read(ListArray::from_iter_primitive::<Int64Type, _, _>(rows.clone())), expected);
    assert_eq!(read(LargeListArray::from_iter_primitive::<Int64Type, _, _>(rows.clone())), expected);
    assert_eq!(read(ListViewArray::from_iter_primitive::<Int64Type, _, _>(rows.clone())), expected);
    assert_eq!(read(LargeListViewArray::from_iter_primitive::<Int64Type, _, _>(rows.clone())), expected);
    let sliced = ListArray::from_iter_primitive::<Int64Type, _, _>(rows).slice(1, 3);
    assert_eq!(read(sliced), expected[1..]);
    let pairs = vec![Some(vec![Some(1), None]), None, Some(vec![Some(3), Some(4)])];
    let pairs = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(pairs, 2);
    let expected = [Value::Array(vec![Value::Int(1), Value::Null]), Value::Null, ints(&[3, 4])];
    assert_eq!(read(pairs.clone()), expected);
    assert_eq!(read(pairs.slice(1, 2)), expected[1..]);

    let mut strings = ListBuilder::new(StringBuilder::new());
    strings.append_value([Some("a"), None]);
    assert_eq!(read(strings.finish()), [Value::Array(vec![text("a"), Value::Null])]);
    let mut nested = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    nested.append_value([Some(vec![Some(1)])]);
    nested.append_null();
    assert_eq!(read(nested.finish()), [Value::Record, Value::Null]);
    let nulls = ListArray::new(
        Arc::new(Field::new("item", DataType::Null, true)),
        OffsetBuffer::from_lengths([2]),
        Arc::new(NullArray::new(2)),
        None,
    );
    assert_eq!(read(nulls), [Value::Array(vec![Value::Null, Value::Null])]);
}

#[test]
fn an_element_that_does_not_fit_names_the_row_of_its_list() {
    let rows = vec![Some(vec![Some(1), Some(2)]), Some(vec![]), Some(vec![Some(3), Some(u64::MAX)])];
    let lists = ListArray::from_iter_primitive::<UInt64Type, _, _>(rows);
    assert_eq!(first_unreadable(Arc::new(lists.clone())).unwrap().row, Some(2));
    assert_eq!(read(lists.clone())[2], Value::Null);
    let outside = first_unreadable(Arc::new(lists.slice(0, 2)));
    assert_eq!(outside, None, "elements outside the slice do not matter");
}

fn person() -> StructArray {
    let city = StringArray::from(vec![Some("Geneva"), Some("hidden"), None]);
    let address = StructArray::new(
        Fields::from(vec![Field::new("city", DataType::Utf8, true)]),
        vec![Arc::new(city)],
        Some(NullBuffer::from(vec![true, true, true])),
    );
    StructArray::new(
        Fields::from(vec![
            Field::new("age", DataType::Int32, true),
            Field::new("address", address.data_type().clone(), true),
        ]),
        vec![Arc::new(Int32Array::from(vec![Some(27), Some(1), Some(3)])), Arc::new(address)],
        Some(NullBuffer::from(vec![true, false, true])),
    )
}

#[test]
fn structs_are_nested_records_and_a_null_one_hides_its_fields() {
    let terms = terms(&["p.address.city", "p", "p.age", "p.address", "p.nothing"]);
    let batch = batch(vec![("p", Arc::new(person()))]);
    let events = ArrowEvents::new(&batch, &terms, None).unwrap();
    let rows: Vec<[Value; 5]> =
        (0..3).map(|row| [0, 1, 2, 3, 4].map(|id| value(&events.event(row), TermId(id)))).collect();
    let record = Value::Record;
    assert_eq!(rows[0], [text("Geneva"), record.clone(), Value::Int(27), record.clone(), Value::Null]);
    assert_eq!(rows[1], [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null]);
    assert_eq!(rows[2], [Value::Null, record.clone(), Value::Int(3), record, Value::Null]);
}

/// `{ann: {age: 1}, bob: null}`, `{}`, `{ann: {age: null}}`, and a null that hides `{cyd: {age: 4}}`.
fn people() -> MapArray {
    let keys = StringArray::from(vec!["ann", "bob", "ann", "cyd"]);
    let person = StructArray::new(
        Fields::from(vec![Field::new("age", DataType::Int32, true)]),
        vec![Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4)]))],
        Some(NullBuffer::from(vec![true, false, true, true])),
    );
    map(Arc::new(keys), Arc::new(person), &[2, 0, 1, 1], Some(vec![true, true, true, false]))
}

fn map(keys: ArrayRef, values: ArrayRef, lengths: &[usize], valid: Option<Vec<bool>>) -> MapArray {
    let fields = Fields::from(vec![
        Field::new("keys", keys.data_type().clone(), false),
        Field::new("values", values.data_type().clone(), true),
    ]);
    let entries = StructArray::new(fields, vec![keys, values], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    MapArray::new(field, offsets, entries, valid.map(NullBuffer::from), false)
}

#[test]
fn maps_are_spread_into_attributes() {
    let terms = terms(&["m.ann.age", "m.ann", "m", "m.bob", "m.bob.age", "m.cyd.age"]);
    let whole = batch(vec![("m", Arc::new(people()))]);
    let expected = [
        [Value::Int(1), Value::Record, Value::Record, Value::Null, Value::Null, Value::Null],
        [Value::Null, Value::Null, Value::Record, Value::Null, Value::Null, Value::Null],
        [Value::Null, Value::Record, Value::Record, Value::Null, Value::Null, Value::Null],
        [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
    ];
    for (from, batch) in [(0, whole.clone()), (2, whole.slice(2, 2))] {
        let events = ArrowEvents::new(&batch, &terms, None).unwrap();
        for (row, expected) in expected[from..].iter().enumerate() {
            let event = events.event(row);
            assert_eq!([0, 1, 2, 3, 4, 5].map(|id| value(&event, TermId(id))), *expected, "row {row}");
        }
    }
}

#[test]
fn a_map_must_have_string_keys_each_once() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let by_number = batch(vec![("m", Arc::new(map(numbers.clone(), numbers.clone(), &[2], None)))]);
    let error = ArrowEvents::new(&by_number, &terms(&["m.1"]), None).err().unwrap();
    assert!(error.message.contains("cannot be matched"), "{error}");
    assert!(ArrowEvents::new(&by_number, &terms(&["m"]), None).is_ok(), "it is at least present");
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
    let twice = batch(vec![("m", Arc::new(map(keys, numbers, &[2], None)))]);
    let error = ArrowEvents::new(&twice, &terms(&["m.a"]), None).err().unwrap();
    assert_eq!(error.to_string(), "attribute `m`: row 0: the map has the key \"a\" twice");
    assert!(ArrowEvents::new(&twice, &terms(&["m.b"]), None).is_ok());
}

#[test]
fn other_types_are_refused_only_where_they_are_used() {
    for array in [
        Arc::new(BinaryArray::from(vec![&b"x"[..]])) as ArrayRef,
        Arc::new(Time32SecondArray::from(vec![1])),
        Arc::new(DurationSecondArray::from(vec![1])),
    ] {
        let batch = batch(vec![("x", array)]);
        let error = ArrowEvents::new(&batch, &terms(&["x"]), None).err().unwrap();
        assert_eq!(error.path.as_deref(), Some("x"));
        assert!(error.hint.unwrap().contains("supported are booleans"));
        let events = ArrowEvents::new(&batch, &terms(&["y"]), None).unwrap();
        assert_eq!((events.len(), events.columns().len()), (1, 0));
        assert!(events.event(0).values.is_empty());
    }
}

#[test]
fn an_attribute_with_two_columns_is_refused() {
    let flat: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let batch = batch(vec![("p", Arc::new(person())), ("p.age", flat)]);
    let error = ArrowEvents::new(&batch, &terms(&["p.age"]), None).err().unwrap();
    assert_eq!(error.path.as_deref(), Some("p.age"));
    assert!(ArrowEvents::new(&batch, &terms(&["p.address.city"]), None).is_ok());
}

fn hours(low: ArrayRef, high: ArrayRef, valid: Vec<bool>) -> RecordBatch {
    let field = |name, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let fields = Fields::from(vec![field("low", &low), field("high", &high)]);
    batch(vec![("hours", Arc::new(StructArray::new(fields, vec![low, high], Some(NullBuffer::from(valid)))))])
}

#[test]
fn a_struct_is_an_interval_where_the_caller_says_so() {
    let low: ArrayRef = Arc::new(Int32Array::from(vec![Some(20), None, Some(7)]));
    let high: ArrayRef = Arc::new(Float64Array::from(vec![Some(30.5), Some(1.0), Some(7.0)]));
    let good = hours(low.clone(), high.clone(), vec![true, false, true]);
    let (terms, marked) = (terms(&["hours"]), ["hours".to_string()]);
    let events = ArrowEvents::with_intervals(&good, &terms, None, &marked).unwrap();
    let interval = |low, high| Value::interval(Value::Int(low), Value::Float(high)).unwrap();
    assert_eq!(value(&events.event(0), TermId(0)), interval(20, 30.5));
    assert!(events.event(0).has_intervals);
    assert!(events.event(1).values.is_empty() && !events.event(1).has_intervals);
    assert_eq!(value(&events.event(2), TermId(0)), interval(7, 7.0));
    let unmarked = ArrowEvents::new(&good, &terms, None).unwrap();
    assert_eq!(value(&unmarked.event(0), TermId(0)), Value::Record);

    for (batch, row, message) in [
        (
            hours(low.clone(), high.clone(), vec![true, true, true]),
            Some(1),
            "low end of an interval must not be null",
        ),
        (hours(high, low, vec![true, false, true]), Some(0), "above its high end"),
        (
            batch(vec![("hours", Arc::new(Int32Array::from(vec![1])))]),
            None,
            "a struct of `low` and `high`, not Int32",
        ),
    ] {
        let error = ArrowEvents::with_intervals(&batch, &terms, None, &marked).err().unwrap();
        assert!(error.message.contains(message), "{error}");
        assert_eq!((error.path.as_deref(), error.row), (Some("hours"), row));
    }
}

#[test]
fn the_schema_turns_text_into_timestamps() {
    let timestamps = Schema::parse([("x", "timestamp")]).unwrap();
    let strings = vec![Some("1970-01-01 00:00:01"), None, Some("soon")];
    let expected = [Value::Timestamp(1_000_000), Value::Null, text("soon")];
    for array in [
        Arc::new(StringArray::from(strings.clone())) as ArrayRef,
        Arc::new(LargeStringArray::from(strings.clone())),
        Arc::new(StringViewArray::from(strings.clone())),
        Arc::new(strings.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ] {
        assert_eq!(try_read(array, Some(&timestamps)).unwrap(), expected);
    }
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("1970-01-01"), None]);
    lists.append_value([Some("1970-01-01"), Some("soon")]);
    let lists: ArrayRef = Arc::new(lists.finish());
    let as_text = [
        Value::Array(vec![text("1970-01-01"), Value::Null]),
        Value::Array(vec![text("1970-01-01"), text("soon")]),
    ];
    assert_eq!(try_read(lists.clone(), Some(&timestamps)).unwrap(), as_text);
    let arrays = Schema::parse([("x", "array<timestamp>")]).unwrap();
    let coerced = [Value::Array(vec![Value::Timestamp(0), Value::Null]), as_text[1].clone()];
    assert_eq!(try_read(lists, Some(&arrays)).unwrap(), coerced);

    let ends = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let batch = hours(ends("1970-01-01"), ends("1970-01-02"), vec![true]);
    let schema = Schema::parse([("hours", "timestamp")]).unwrap();
    let terms = terms(&["hours"]);
    let events = ArrowEvents::with_intervals(&batch, &terms, Some(&schema), &["hours".into()]).unwrap();
    let day = Value::interval(Value::Timestamp(0), Value::Timestamp(86_400_000_000)).unwrap();
    assert_eq!(value(&events.event(0), TermId(0)), day);
}

#[test]
fn columns_can_be_read_one_by_one() {
    let batch = batch(vec![("x", Arc::new(Int32Array::from(vec![Some(1), None])))]);
    let events = ArrowEvents::new(&batch, &terms(&["y", "x"]), None).unwrap();
    let column = events.column(TermId(1)).unwrap();
    assert_eq!(column.len(), 2);
    assert_eq!(column.value(0).map(ValueRef::to_owned), Some(Value::Int(1)));
    assert!(column.value(1).is_none());
    assert!(events.column(TermId(0)).is_none());
}

/// One event of a fixed shape, from which both an Arrow row and JSON text are made.
#[derive(Clone, Debug)]
struct Row {
    truth: Option<bool>,
    int: Option<i32>,
    unsigned: Option<i64>,
    float: Option<f64>,
    text: Option<String>,
    word: Option<String>,
    millis: Option<i64>,
    tags: Option<Vec<Option<String>>>,
    inner: Option<(Option<i64>, Option<String>)>,
    map: Option<Vec<(String, Option<i64>)>>,
}

fn row() -> impl Strategy<Value = Row> {
    let text = || prop::option::of("\\PC{0,15}");
    let map = prop::collection::btree_map("[a-c]", prop::option::of(any::<i64>()), 0..3);
    let scalars = (
        any::<Option<bool>>(),
        any::<Option<i32>>(),
        prop::option::of(0..i64::MAX),
        prop::option::of(any::<f64>().prop_filter("finite", |x| x.is_finite())),
        text(),
        prop::option::of("[a-c]"),
        prop::option::of(0i64..4_000_000_000_000),
    );
    let nested = (
        prop::option::of(prop::collection::vec(text(), 0..3)),
        prop::option::of((any::<Option<i64>>(), text())),
        prop::option::of(map.prop_map(|entries| entries.into_iter().collect())),
    );
    (scalars, nested).prop_map(|((truth, int, unsigned, float, text, word, millis), (tags, inner, map))| {
        Row { truth, int, unsigned, float, text, word, millis, tags, inner, map }
    })
}

fn to_json(row: &Row) -> String {
    let millis = row.millis.map(|millis| {
        serde_json::json!({"$timestamp": crate::event::timestamp::format_timestamp_iso(millis * 1000)})
    });
    let inner = row.inner.as_ref().map(|(x, y)| serde_json::json!({"x": x, "deep": {"y": y}}));
    let map: Option<serde_json::Value> =
        row.map.as_ref().map(|entries| entries.iter().map(|(key, value)| (key.clone(), *value)).collect());
    serde_json::json!({
        "truth": row.truth, "int": row.int, "unsigned": row.unsigned, "text": row.text, "word": row.word,
        "millis": millis, "tags": row.tags, "inner": inner, "map": map,
    })
    .to_string()
    // serde_json writes a float as the shortest text, like the others; here it must stay a float.
    .replacen(
        '{',
        &format!("{{\"float\":{},", row.float.map_or("null".into(), |x| format!("{x:?}"))),
        1,
    )
}

fn to_batch(rows: &[Row], layout: u8) -> RecordBatch {
    let texts = rows.iter().map(|row| row.text.as_deref());
    let text: ArrayRef = match layout % 4 {
        0 => Arc::new(texts.collect::<StringArray>()),
        1 => Arc::new(texts.collect::<LargeStringArray>()),
        2 => Arc::new(texts.collect::<StringViewArray>()),
        _ => Arc::new(texts.collect::<DictionaryArray<UInt16Type>>()),
    };
    let mut tags = ListBuilder::new(StringBuilder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in rows {
        match &row.tags {
            Some(items) => tags.append_value(items.iter().map(Option::as_deref)),
            None => tags.append_null(),
        }
        for (key, value) in row.map.iter().flatten() {
            map.keys().append_value(key);
            map.values().append_option(*value);
        }
        map.append(row.map.is_some()).unwrap();
    }
    let y = rows.iter().map(|row| row.inner.as_ref().and_then(|inner| inner.1.as_deref()));
    let deep = StructArray::from(vec![(
        Arc::new(Field::new("y", DataType::Utf8, true)),
        Arc::new(y.collect::<StringArray>()) as ArrayRef,
    )]);
    let x = rows.iter().map(|row| row.inner.as_ref().and_then(|inner| inner.0));
    let inner = StructArray::new(
        Fields::from(vec![
            Field::new("x", DataType::Int64, true),
            Field::new("deep", deep.data_type().clone(), true),
        ]),
        vec![Arc::new(x.collect::<Int64Array>()), Arc::new(deep)],
        Some(rows.iter().map(|row| row.inner.is_some()).collect()),
    );
    let unsigned = rows.iter().map(|row| row.unsigned.map(|i| i as u64));
    batch(vec![
        ("truth", Arc::new(rows.iter().map(|row| row.truth).collect::<BooleanArray>())),
        ("int", Arc::new(rows.iter().map(|row| row.int).collect::<Int32Array>())),
        ("unsigned", Arc::new(unsigned.collect::<UInt64Array>())),
        ("float", Arc::new(rows.iter().map(|row| row.float).collect::<Float64Array>())),
        ("text", text),
        ("word", Arc::new(rows.iter().map(|row| row.word.as_deref()).collect::<DictionaryArray<Int8Type>>())),
        ("millis", Arc::new(rows.iter().map(|row| row.millis).collect::<TimestampMillisecondArray>())),
        ("tags", Arc::new(tags.finish())),
        ("inner", Arc::new(inner)),
        ("map", Arc::new(map.finish())),
    ])
}

const NAMES: [&str; 16] = [
    "inner.deep.y",
    "map.a",
    "truth",
    "int",
    "unsigned",
    "float",
    "text",
    "word",
    "millis",
    "tags",
    "inner",
    "inner.x",
    "inner.deep",
    "map",
    "map.b",
    "absent",
];

proptest! {
    #[test]
    fn rows_equal_the_same_events_in_json(
        rows in prop::collection::vec(row(), 1..8),
        layout in any::<u8>(),
        used in prop::sample::subsequence(&NAMES[..], 0..NAMES.len()),
        skip in any::<prop::sample::Index>(),
    ) {
        let terms = terms(&used);
        let skip = skip.index(rows.len());
        let batch = to_batch(&rows, layout).slice(skip, rows.len() - skip);
        let events = ArrowEvents::new(&batch, &terms, None).unwrap();
        prop_assert_eq!(events.len(), rows.len() - skip);
        let mut event = Event::default();
        for (at, row) in rows[skip..].iter().enumerate() {
            let json = to_json(row);
            let record = json::read_record(json.as_bytes()).unwrap();
            let expected = record.resolve(&terms);
            events.fill(at, &mut event);
            let contents = |event: &Event<'_>| -> Vec<(TermId, Value)> {
                event.values.iter().map(|(attribute, value)| (*attribute, (*value).to_owned())).collect()
            };
            prop_assert_eq!(contents(&event), contents(&expected), "{}", json);
        }
    }
}
