//! Sixty-four bytes at a time: which of them are equal to a byte, as a bit each.
//!
//! `unsafe` is here for one reason: instructions that not every processor has. A value of [`Avx512`] or
//! [`Avx2`] is created only after a check that the processor has them, so their methods are safe to call.
//! [`run`] compiles a job once for each of them, so that everything is inlined into one loop. No closures
//! here: they would be compiled without these instructions, and every comparison would become a call.
//!
//! Processors with neither (arm64 among them) get no lanes: a scan by words of eight bytes was slower than reading
//! byte by byte.

/// Compares sixty-four bytes at once. Bit 0 is the first byte.
pub(super) trait Lanes: Copy {
    type Block: Copy;

    fn load(self, bytes: &[u8; 64]) -> Self::Block;
    fn equal(self, block: Self::Block, byte: u8) -> u64;
    /// Which bytes are equal once bit 5 is set: `{` finds `[` too, `e` finds `E`.
    fn equal_with_bit_5(self, block: Self::Block, byte: u8) -> u64;
    fn below(self, block: Self::Block, byte: u8) -> u64;
    /// Which bytes are white space: space, tab, line feed, carriage return.
    fn white(self, block: Self::Block) -> u64;
    /// Which bytes are digits.
    fn digits(self, block: Self::Block) -> u64;
    /// The bits that either block has.
    fn either(self, a: Self::Block, b: Self::Block) -> Self::Block;
    fn have_bit_5(self, block: Self::Block) -> u64;
    fn have_bit_7(self, block: Self::Block) -> u64;
    /// Each bit becomes the parity of itself and all bits below it.
    fn prefix_xor(self, bits: u64) -> u64;
}

/// For the low four bits of a byte, the white space that has them. The highest bit makes the others equal to no byte: one
/// that has it itself is looked up as 0.
const WHITE: [u8; 16] = {
    let mut white = [0x80; 16];
    white[0] = b' ';
    white[9] = b'\t';
    white[10] = b'\n';
    white[13] = b'\r';
    white
};

/// What is to be done with lanes. `run` must be `#[inline(always)]`, or it is compiled without their instructions.
pub(super) trait Job {
    type Output;

    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Does the job with the widest lanes there are; gives it back if there are none.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run<J: Job>(job: J) -> Result<J::Output, J> {
    Err(job)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn run<J: Job>(job: J) -> Result<J::Output, J> {
    if let Some(lanes) = Avx512::find() {
        return Ok(x86::with_avx512(job, lanes));
    }
    match Avx2::find() {
        Some(lanes) => Ok(x86::with_avx2(job, lanes)),
        None => Err(job),
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};
#[cfg(all(test, target_arch = "x86_64"))]
pub(super) use x86::{with_avx2, with_avx512};

/// The text of bytes that are all below 128.
///
/// # Safety
/// A lone byte from 128 on is not UTF-8, and a `str` must be.
pub(super) unsafe fn ascii_text(bytes: &[u8]) -> &str {
    // SAFETY: ASCII is UTF-8; that it is ASCII is what the caller promises.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Job, Lanes, WHITE};

    /// Proof that the processor has AVX-512 with instructions on bytes.
    #[derive(Clone, Copy)]
    pub struct Avx512(());

    /// Proof that the processor has AVX2.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    macro_rules! all_detected {
        ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
    }

    impl Avx512 {
        #[inline]
        pub fn find() -> Option<Self> {
            let has = all_detected!("avx512f", "avx512bw", "avx2", "bmi1", "bmi2", "popcnt", "pclmulqdq");
            has.then_some(Self(()))
        }
    }

    impl Avx2 {
        #[inline]
        pub fn find() -> Option<Self> {
            all_detected!("avx2", "bmi1", "bmi2", "popcnt", "pclmulqdq").then_some(Self(()))
        }
    }

    pub fn with_avx512<J: Job>(job: J, lanes: Avx512) -> J::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,popcnt,pclmulqdq")]
        fn compiled<J: Job>(job: J, lanes: Avx512) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: the lanes prove that the processor has these instructions.
        unsafe { compiled(job, lanes) }
    }

    pub fn with_avx2<J: Job>(job: J, lanes: Avx2) -> J::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,pclmulqdq")]
        fn compiled<J: Job>(job: J, lanes: Avx2) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: as above.
        unsafe { compiled(job, lanes) }
    }

    /// Multiplying by all ones without carries adds up, modulo 2, all bits below each bit.
    ///
    /// # Safety
    /// The processor must have `pclmulqdq`.
    #[inline(always)]
    unsafe fn prefix_xor(bits: u64) -> u64 {
        // SAFETY: the caller says so.
        unsafe {
            let product =
                _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(0xFFu8 as i8));
            _mm_cvtsi128_si64(product) as u64
        }
    }

    // SAFETY, for every block below: a value of the type proves that the processor has the instructions; loads are
    // unaligned and within the array.

    impl Lanes for Avx512 {
        type Block = __m512i;

        #[inline(always)]
        fn load(self, bytes: &[u8; 64]) -> __m512i {
            unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
        }

        #[inline(always)]
        fn equal(self, block: __m512i, byte: u8) -> u64 {
            unsafe { _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8)) }
        }

        #[inline(always)]
        fn equal_with_bit_5(self, block: __m512i, byte: u8) -> u64 {
            unsafe { self.equal(_mm512_or_si512(block, _mm512_set1_epi8(0x20)), byte) }
        }

        #[inline(always)]
        fn below(self, block: __m512i, byte: u8) -> u64 {
            unsafe { _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(byte as i8)) }
        }

        #[inline(always)]
        fn white(self, block: __m512i) -> u64 {
            unsafe {
                let table = _mm512_broadcast_i32x4(_mm_loadu_si128(WHITE.as_ptr().cast()));
                _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, block), block)
            }
        }

        #[inline(always)]
        fn digits(self, block: __m512i) -> u64 {
            unsafe { self.below(_mm512_sub_epi8(block, _mm512_set1_epi8(b'0' as i8)), 10) }
        }

        #[inline(always)]
        fn either(self, a: __m512i, b: __m512i) -> __m512i {
            unsafe { _mm512_or_si512(a, b) }
        }

        #[inline(always)]
        fn have_bit_5(self, block: __m512i) -> u64 {
            unsafe { _mm512_test_epi8_mask(block, _mm512_set1_epi8(0x20)) }
        }

        #[inline(always)]
        fn have_bit_7(self, block: __m512i) -> u64 {
            unsafe { _mm512_movepi8_mask(block) }
        }

        #[inline(always)]
        fn prefix_xor(self, bits: u64) -> u64 {
            unsafe { prefix_xor(bits) }
        }
    }

    impl Lanes for Avx2 {
        type Block = [__m256i; 2];

        #[inline(always)]
        fn load(self, bytes: &[u8; 64]) -> Self::Block {
            let (low, high) = bytes.split_at(32);
            unsafe { [_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast())] }
        }

        #[inline(always)]
        fn equal(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let wanted = _mm256_set1_epi8(byte as i8);
                self.bits([_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted)])
            }
        }

        #[inline(always)]
        fn equal_with_bit_5(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let bit = _mm256_set1_epi8(0x20);
                self.equal([_mm256_or_si256(low, bit), _mm256_or_si256(high, bit)], byte)
            }
        }

        #[inline(always)]
        fn below(self, [low, high]: Self::Block, byte: u8) -> u64 {
            unsafe {
                let greatest = _mm256_set1_epi8((byte - 1) as i8);
                self.bits([
                    _mm256_cmpeq_epi8(_mm256_max_epu8(low, greatest), greatest),
                    _mm256_cmpeq_epi8(_mm256_max_epu8(high, greatest), greatest),
                ])
            }
        }

        #[inline(always)]
        fn white(self, [low, high]: Self::Block) -> u64 {
            unsafe {
                let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(WHITE.as_ptr().cast()));
                self.bits([
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, low), low),
                    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, high), high),
                ])
            }
        }

        #[inline(always)]
        fn digits(self, [low, high]: Self::Block) -> u64 {
            unsafe {
                let zero = _mm256_set1_epi8(b'0' as i8);
                self.below([_mm256_sub_epi8(low, zero), _mm256_sub_epi8(high, zero)], 10)
            }
        }

        #[inline(always)]
        fn either(self, [low, high]: Self::Block, [other_low, other_high]: Self::Block) -> Self::Block {
            unsafe { [_mm256_or_si256(low, other_low), _mm256_or_si256(high, other_high)] }
        }

        #[inline(always)]
        fn have_bit_5(self, [low, high]: Self::Block) -> u64 {
            unsafe { self.bits([_mm256_slli_epi16::<2>(low), _mm256_slli_epi16::<2>(high)]) }
        }

        #[inline(always)]
        fn have_bit_7(self, block: Self::Block) -> u64 {
            self.bits(block)
        }

        #[inline(always)]
        fn prefix_xor(self, bits: u64) -> u64 {
            unsafe { prefix_xor(bits) }
        }
    }

    impl Avx2 {
        /// The highest bit of every byte.
        #[inline(always)]
        fn bits(self, [low, high]: [__m256i; 2]) -> u64 {
            let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
            low as u32 as u64 | (high as u32 as u64) << 32
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Compare<'b>(&'b [u8; 64], u8);

    impl Job for Compare<'_> {
        type Output = [u64; 9];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [u64; 9] {
            let block = lanes.load(self.0);
            [
                lanes.equal(block, self.1),
                lanes.equal_with_bit_5(block, self.1),
                lanes.below(block, self.1.max(1)),
                lanes.have_bit_5(block),
                lanes.have_bit_7(block),
                lanes.prefix_xor(lanes.equal(block, self.1)),
                lanes.white(block),
                lanes.digits(block),
                lanes.equal(lanes.either(block, lanes.load(&[0x11; 64])), self.1),
            ]
        }
    }

    fn one_by_one(bytes: &[u8; 64], byte: u8) -> [u64; 9] {
        let bits = |holds: &dyn Fn(u8) -> bool| {
            bytes.iter().enumerate().fold(0, |bits, (at, b)| bits | (holds(*b) as u64) << at)
        };
        let equal = bits(&|b| b == byte);
        [
            equal,
            bits(&|b| b | 0x20 == byte),
            bits(&|b| b < byte.max(1)),
            bits(&|b| b & 0x20 != 0),
            bits(&|b| b >= 128),
            (0..64)
                .fold(0, |all, at| all | ((equal & (u64::MAX >> (63 - at))).count_ones() as u64 % 2) << at),
            bits(&|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')),
            bits(&|b| b.is_ascii_digit()),
            bits(&|b| b | 0x11 == byte),
        ]
    }

    proptest! {
        #[test]
        fn lanes_compare_as_bytes_do(
            bytes in prop::collection::vec(any::<u8>(), 64), at in 0usize..64, other in any::<u8>(),
        ) {
            let bytes: [u8; 64] = bytes.try_into().unwrap();
            for byte in [bytes[at], bytes[at] | 0x20, other] {
                let expected = one_by_one(&bytes, byte);
                if let Some(lanes) = Avx512::find() {
                    prop_assert_eq!(with_avx512(Compare(&bytes, byte), lanes), expected);
                }
                if let Some(lanes) = Avx2::find() {
                    prop_assert_eq!(with_avx2(Compare(&bytes, byte), lanes), expected);
                }
            }
        }
    }
}
