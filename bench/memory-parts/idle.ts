/** Bare Node that does nothing: what every other figure is compared with. */
console.log('ready');
process.stdin.resume();
