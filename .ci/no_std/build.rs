fn main() {
    // Our own entry point instead of the C runtime's.
    println!("cargo:rustc-link-arg-bins=-nostartfiles");
}
