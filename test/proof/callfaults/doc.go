// Package callfaults tests that a stage survives the failure of any one of its database calls: the call does not arrive,
// or its answer is lost.
package callfaults
