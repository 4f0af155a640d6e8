// relu(A @ B) on the best device, with bindgen's bindings of tuff.h, without hand-written declarations or casts.
//   bindgen ../../include/tuff/tuff.h -o tuff.rs
//   TUFF_BINDINGS=$PWD/tuff.rs rustc --edition 2021 -L ../../build/release -l tuff program.rs
//   LD_LIBRARY_PATH=../../build/release ./program
#[allow(dead_code, non_camel_case_types, non_upper_case_globals, non_snake_case)]
mod tuff {
    include!(env!("TUFF_BINDINGS"));
}
use std::ptr::null;
use tuff::*;

fn check(status: tuff_status) -> Result<(), String> {
    if status == TUFF_OK {
        return Ok(());
    }
    let mut text = [0; 512];
    let message = unsafe {
        tuff_last_error(text.as_mut_ptr(), 512, std::ptr::null_mut());
        std::ffi::CStr::from_ptr(text.as_ptr())
    };
    Err(message.to_string_lossy().into_owned())
}

fn upload(context: tuff_context, values: &[f32]) -> Result<tuff_buffer, String> {
    let (mut buffer, bytes) = (TUFF_NULL_HANDLE, std::mem::size_of_val(values) as u64);
    unsafe {
        check(tuff_alloc(context, bytes, &mut buffer))?;
        check(tuff_copy_htod(context, buffer, 0, values.as_ptr().cast(), bytes))?;
    }
    Ok(buffer)
}

fn main() -> Result<(), String> {
    const M: u64 = 2;
    const N: u64 = 2;
    const K: u64 = 3;
    let mut context = TUFF_NULL_HANDLE;
    check(unsafe { tuff_context_create(null(), &mut context) })?;
    let a = upload(context, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let b = upload(context, &[-2.0, 1.0, -1.0, -1.0, 1.5, 1.0])?;
    let c = upload(context, &[0.0; (M * N) as usize])?;
    let mut result = [0f32; (M * N) as usize];

    unsafe {
        check(tuff_gemm(
            context, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, M, N, K, 1.0, a, K, b, N, 0.0, c, N,
        ))?;
        check(tuff_unary(context, TUFF_F32, TUFF_UNARY_RELU, c, c, M * N))?;
        check(tuff_copy_dtoh(context, result.as_mut_ptr().cast(), c, 0, 4 * M * N))?;
    }
    println!("relu(A @ B), A 2x3, B 3x2:");
    for row in result.chunks(N as usize) {
        println!("  {:.1}  {:.1}", row[0], row[1]);
    }
    check(unsafe { tuff_context_destroy(context) }) // frees the buffers too
}
