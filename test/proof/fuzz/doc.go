// Package fuzz throws at the functions that judge what people write (posts, markup,
// routes, templates) whatever a fuzzer makes up. Each answers, or refuses by the
// name of an argument; none fails in another way. Seeds run as ordinary tests.
package fuzz
