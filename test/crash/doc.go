// Package crash kills, stops and doubles daemons, cuts their connections, and fills their disks.
// Then it checks that no post is lost, duplicated beyond the bound, or stuck.
package crash
