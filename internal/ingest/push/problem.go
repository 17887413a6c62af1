package push

import (
	"time"

	"autopost/internal/problem"
)

// refusedArray is the problem of an array in which no post is valid, with one result per post.
type refusedArray struct {
	*problem.Problem

	Results []any `json:"results"`
}

// QuotaOf returns the quota of an endpoint: ingress_rps posts per second, of which left are allowed now. Below one
// post per second the window is that of one post.
func QuotaOf(ingressRPS float64, left int, reset time.Duration) problem.Quota {
	if ingressRPS <= 0 {
		return problem.Quota{}
	}
	window := time.Second
	if ingressRPS < 1 {
		window = time.Duration(float64(time.Second) / ingressRPS)
	}
	return problem.Quota{Name: "ingress_rps", Most: max(1, int(ingressRPS)), Window: window, Left: left, Reset: reset}
}
