package authlimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWrongPasswordsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Logins
		l.Succeeded("192.0.2.1:1000", "ann@example.org")
		for i := range accountAtOnce {
			at := fmt.Sprintf("198.51.100.%d:9", i)
			require.Zero(t, l.Wait(at, "ann@example.org"))
			l.Failed(at, "Ann@Example.org ")
		}
		require.Equal(t, accountEvery, l.Wait("203.0.113.1:5", "ann@example.org").Round(time.Second), "a new address waits")
		require.Zero(t, l.Wait("192.0.2.1:2000", "ann@example.org"), "her own address does not")
		require.Zero(t, l.Wait("203.0.113.1:5", "bob@example.org"), "another account is free")
		<-time.After(accountEvery)
		require.Zero(t, l.Wait("203.0.113.1:5", "ann@example.org"))
	})
}

func TestWrongPasswordsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Logins
		for i := range atOnce {
			l.Failed("192.0.2.1:1", fmt.Sprintf("%d@example.org", i))
		}
		require.Equal(t, time.Second, l.Wait("192.0.2.1:7", "ann@example.org").Round(time.Millisecond))
		require.Zero(t, l.Wait("192.0.2.2:7", "ann@example.org"))
	})
}

func TestAWrongPasswordEndsTheTrust(t *testing.T) {
	t.Parallel()
	var l Logins
	l.Succeeded("192.0.2.1:1", "ann")
	for range atOnce + 1 {
		l.Failed("192.0.2.1:1", "ann")
	}
	require.NotZero(t, l.Wait("192.0.2.1:1", "ann"))
}
