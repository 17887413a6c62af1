// Package pages tests the pages: by plain requests, and in Chromium with axe-core, in which each page must have no
// violation, no error in the console and nothing wider than the window.
//
// testdata/axe.js is axe-core 4.14.1 (MPL-2.0), for these tests alone.
package pages
