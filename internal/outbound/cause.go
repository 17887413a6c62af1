package outbound

import (
	"errors"
	"net"
	"net/url"
)

// Cause describes err without a network address or a URL. Errors of calls are shown to users of a workspace, and an
// address tells how the network of the operator is built.
func Cause(err error) string {
	var (
		wrapped  *url.Error
		network  *net.OpError
		lookup   *net.DNSError
		malposed *net.AddrError
	)
	for _, blocked := range []error{ErrNoPublicAddress, ErrBlockedAddress, ErrBlockedPort, ErrBlockedScheme} {
		if errors.Is(err, blocked) {
			return blocked.Error()
		}
	}
	switch {
	case errors.As(err, &lookup):
		return "lookup " + lookup.Name + ": " + lookup.Err
	case errors.As(err, &malposed):
		return malposed.Err
	case errors.As(err, &network):
		return network.Op + ": " + Cause(network.Err)
	case errors.As(err, &wrapped):
		return Cause(wrapped.Err)
	default:
		return err.Error()
	}
}
