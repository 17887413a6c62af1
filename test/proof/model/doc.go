// Package model describes the life of a delivery as a machine of explicit states: the rows of the database, the memory
// of up to three workers, and the copies at the platform. It follows the contract and uses no database, so a test can
// visit all its states: each crash, lost answer, late worker and operator action occurs in one of them. The walks of
// test/proof/conformance compare the SQL functions with it, step by step.
//
// The model has these limits. None of them hides a fault:
//   - Time has no length. A wait, a lease and a pause end at any moment, independently. Real clocks only forbid some of
//     these orders.
//   - A call is one step: the instant at which the platform decides. The steps before and after it are separate, and
//     all other steps may come between.
//   - A call starts inside its lease, because the deadline of the adapter lies inside it, and a running daemon keeps its
//     heartbeat. Config.Late drops both assumptions: a stopped process wakes up and sends, and a silent run is recovered
//     while its call is in flight.
//   - A claim is identified by its delivery and attempt, because only a claim raises the attempt.
//   - Attempts, releases, requeues and wrong answers of an operator are few. Each one adds the same choices again; the
//     maximum of copies grows as stated in Bound, which the tests check at two budgets.
//   - The platform cannot be asked whether it has a post. Where it can, there are fewer copies, never more.
package model
