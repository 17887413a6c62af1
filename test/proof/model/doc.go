// Package model is the life of a delivery as a machine of explicit states: what the
// database knows, what up to three workers believe, and what the platform took. It is
// written from the contract, without a database, so that all its states can be
// visited: whatever a crash, a lost answer, a late worker or a person may do at any
// moment has happened in one of them. The walks of test/proof/conformance hold the
// SQL functions to it step by step.
//
// What bounds it, and why nothing is lost by that:
//   - Time has no length. A wait passes, a lease runs out, a pause ends, each whenever
//     it likes and independently; real clocks only forbid some of those orders.
//   - A call is one step: the instant at which the platform decides. What comes before
//     it and after it are steps of their own, and everything else may happen between.
//   - A call leaves inside its lease, since the adapter's deadline lies inside it, and a
//     daemon that lives keeps its heartbeat. Config.Late drops both assumptions: a
//     process that was stopped wakes up and sends, a run that fell silent is recovered
//     while its call is still on its way.
//   - A claim is known by its delivery and attempt, since only a claim raises attempt.
//   - Attempts, hand-backs by a pause or a release, requeues and wrong looks of an
//     operator are few. Each adds the same choices again; the maxima grow by the
//     amounts stated in Bound, which the tests see at two budgets.
//   - The platform cannot be asked whether it has a post. Where one can, fewer copies
//     follow, never more.
package model
