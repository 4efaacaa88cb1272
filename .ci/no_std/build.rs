fn main() {
    // Our own entry point instead of the C runtime's; of its library the compiler takes `memcpy`.
    println!("cargo:rustc-link-arg-bins=-nostartfiles");
    println!("cargo:rustc-link-arg-bins=-lc");
}
