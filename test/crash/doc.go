// Package crash breaks the house while it works, and asks afterwards whether
// anything was lost, doubled beyond the bound, or stands still: the daemon killed,
// stopped and doubled, its connections to the database cut.
package crash
