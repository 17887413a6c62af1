// Package config reads the environment and the file of AUTOPOST_CONFIG into a checked
// Config. No other package reads them. Every variable is listed once, in variables.go.
//
// A variable of the environment wins over the same name in the file. An empty variable is
// not set. A file that ends in .yaml or .yml is a flat YAML mapping; any other file has
// lines NAME=value. An unknown name in the file is an error, so that a misspelt limit does
// not silently become a default.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// Config is the configuration of this process. Load fills every field. Names, defaults and
// bounds are in variables.go.
type Config struct {
	// DatabaseURL is the PostgreSQL to use; zero means a private one under DataDir.
	DatabaseURL DSN
	// ListenURL is a direct connection for LISTEN and migrations. Its default is
	// DatabaseURL, so it is zero only together with it.
	ListenURL DSN
	// CoordinatorURL is the coordinator of a Citus cluster, for migrations and event
	// partitions. Its default is ListenURL.
	CoordinatorURL DSN
	// PostgresBin is the folder of initdb and postgres; empty means search.
	PostgresBin string
	// DataDir is an absolute path. It is created when it is first needed.
	DataDir string
	// Listen is the host:port of ingress, API, pages and health.
	Listen string
	// MetricsListen is the host:port of /metrics; empty means on Listen.
	MetricsListen string
	// PublicURL is the base URL by which platforms and people reach Listen, without a trailing slash;
	// empty means unknown.
	PublicURL string
	// TracesEndpoint is the base URL of an OTLP collector; empty means no traces.
	TracesEndpoint string
	// MasterKeyFile contains the keys that wrap sealed credentials. The default file is
	// created when it is first needed; a file that the operator named is not.
	MasterKeyFile string
	// BlobURL is the media store, in the format of gocloud.dev/blob.
	BlobURL string
	// TelegramAPIURL, MAXAPIURL, XAPIURL and YouTubeAPIURL are base URLs without a trailing slash.
	TelegramAPIURL string
	MAXAPIURL      string
	XAPIURL        string
	YouTubeAPIURL  string
	// GoogleTokenURL is the token endpoint of Google, without a trailing slash.
	GoogleTokenURL string
	// SMTPURL is the mail server for alerts, and SMTPFrom the sender; empty means no mail.
	SMTPURL  string
	SMTPFrom string
	// OIDCIssuer, OIDCClientID and OIDCSecretFile are the identity provider; all empty means no sign-in by it.
	OIDCIssuer     string
	OIDCClientID   string
	OIDCSecretFile string
	// MAXCAFile is a PEM bundle that is trusted for MAX in addition to the system's; empty
	// means none.
	MAXCAFile string
	// OutboundAllow lists private networks that the guarded HTTP client may reach.
	OutboundAllow []netip.Prefix
	// LogLevel is the lowest level that is logged.
	LogLevel slog.Level
	// Migrate makes serve bring the schema up to date.
	Migrate bool
	// PullChunkSize is the number of items of a source in one transaction.
	PullChunkSize int
	// DispatcherLimitPerWorkspace is the largest number of deliveries in one claim.
	DispatcherLimitPerWorkspace int
	// DispatcherSenders is the largest number of deliveries in flight in this daemon.
	DispatcherSenders int
	// MaxMediaBytesImage and MaxMediaBytesVideo limit a download, in bytes.
	MaxMediaBytesImage int64
	MaxMediaBytesVideo int64
	// DownloadTimeout limits the whole download of one medium.
	DownloadTimeout time.Duration
	// SendingLease and ClaimedLease are the leases of the database, in whole seconds.
	SendingLease time.Duration
	ClaimedLease time.Duration
	// AlertDeadThreshold, AlertFailedPerm10M and AlertPausedChannels are alert thresholds;
	// 0 means no alert.
	AlertDeadThreshold  int
	AlertFailedPerm10M  int
	AlertPausedChannels int
	// GlobalXPostingEnabled, if false, holds the X channel of domain events.
	GlobalXPostingEnabled bool
	// GlobalXRatePerHour and GlobalXRatePerDay are ceilings of the posts of that channel; 0 means none.
	GlobalXRatePerHour int
	GlobalXRatePerDay  int
	// GlobalXModeration makes all events of that channel wait for a decision.
	GlobalXModeration bool
	// GlobalXAvatarID is the avatar whose X channel gets domain events.
	GlobalXAvatarID string
	// MonitorInterval is the time between two polls of the monitor.
	MonitorInterval time.Duration
	// AdapterTimeout limits one attempt. It always fits SendingLease.
	AdapterTimeout time.Duration

	explicit map[string]bool
}

// Explicit reports whether the variable was set.
func (c Config) Explicit(name string) bool { return c.explicit[name] }

// Settings returns the rows of autopost.settings that the environment sets explicitly, as
// key and value. A default must not overwrite a row of the database.
func (c Config) Settings() map[string]any {
	settings := map[string]any{}
	for name, value := range map[string]any{
		globalXEnabled: c.GlobalXPostingEnabled, globalXPerHour: c.GlobalXRatePerHour, globalXPerDay: c.GlobalXRatePerDay,
		globalXModeration: c.GlobalXModeration, globalXAvatarID: c.GlobalXAvatarID,
	} {
		if c.Explicit(name) {
			settings[strings.ToLower(name)] = value
		}
	}
	for name, value := range map[string]time.Duration{
		sendingLeaseSeconds: c.SendingLease,
		claimedLeaseSeconds: c.ClaimedLease,
	} {
		if c.Explicit(name) {
			settings[strings.ToLower(name)] = int(value / time.Second)
		}
	}
	for name, value := range map[string]int64{
		maxMediaBytesImage: c.MaxMediaBytesImage,
		maxMediaBytesVideo: c.MaxMediaBytesVideo,
		alertDeadThreshold: int64(c.AlertDeadThreshold), alertFailedPerm10M: int64(c.AlertFailedPerm10M), alertPausedChannels: int64(c.AlertPausedChannels),
	} {
		if c.Explicit(name) {
			settings[strings.ToLower(name)] = int(value)
		}
	}
	return settings
}

// Fingerprint is a digest of the variables that all daemons of an installation must share.
func (c Config) Fingerprint() string {
	sum := sha256.Sum256(fmt.Append(nil, c.BlobURL, c.TelegramAPIURL, c.MAXAPIURL, c.XAPIURL, c.YouTubeAPIURL, c.GoogleTokenURL, c.SMTPURL, c.SMTPFrom, c.OutboundAllow,
		c.MaxMediaBytesImage, c.MaxMediaBytesVideo, c.DownloadTimeout, c.SendingLease, c.ClaimedLease, c.AdapterTimeout))
	return hex.EncodeToString(sum[:6])
}

// Error reports variables with missing, unknown or wrong values.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the joined errors, one per variable.
func (e *Error) Unwrap() error { return e.Err }

// Load reads environ, in the form of os.Environ, and the file that it names. An error
// has type *Error and lists every wrong variable with its remedy.
func Load(environ []string) (Config, error) {
	config, err := load(environ)
	if err != nil {
		return config, &Error{err}
	}
	return config, nil
}

func load(environ []string) (Config, error) {
	known := make(map[string]bool, len(variables))
	for _, v := range variables {
		known[v.Name] = true
	}
	fromEnv := koanf.New("")
	if err := fromEnv.Load(env.Provider("", env.Opt{
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if value == "" || !known[name] && name != configFile {
				return "", nil
			}
			return name, value
		},
	}), nil); err != nil {
		return Config{}, fmt.Errorf("read the environment: %w", err)
	}
	values := koanf.New("")
	if path := fromEnv.String(configFile); path != "" {
		if err := loadFile(values, path, known); err != nil {
			return Config{}, fmt.Errorf("%s %s: %w", configFile, path, err)
		}
	}
	if err := values.Merge(fromEnv); err != nil {
		return Config{}, fmt.Errorf("join environment and file: %w", err)
	}
	return build(values)
}

func loadFile(values *koanf.Koanf, path string, known map[string]bool) error {
	var parser koanf.Parser = lines{}
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		parser = yaml.Parser()
	}
	if err := values.Load(file.Provider(path), parser); err != nil {
		return err
	}
	var wrong []error
	names := make([]string, 0, len(values.Raw()))
	for name := range values.Raw() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !known[name] {
			wrong = append(wrong, fmt.Errorf("%s must be a variable of autopost: correct the name or remove it", name))
		}
		if values.Raw()[name] == nil {
			values.Delete(name)
		}
	}
	return errors.Join(wrong...)
}

func build(values *koanf.Koanf) (Config, error) {
	config := Config{explicit: map[string]bool{}}
	var wrong []error
	for _, v := range variables {
		text := v.Default
		if given := asText(values.Get(v.Name)); given != "" {
			text = given
			config.explicit[v.Name] = true
		}
		if text == "" {
			continue
		}
		if err := v.set(&config, text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", v.Name, err))
		}
	}
	if len(wrong) == 0 {
		wrong = append(wrong, config.complete())
	}
	if err := errors.Join(wrong...); err != nil {
		return Config{}, err
	}
	return config, nil
}

// asText formats a value of the file like a variable of the environment.
func asText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = fmt.Sprint(part)
		}
		return strings.Join(parts, ",")
	}
	return strings.TrimSpace(fmt.Sprint(value))
}

// complete fills the fields that depend on others and checks fields against each other.
func (c *Config) complete() error {
	if c.ListenURL.IsZero() {
		c.ListenURL = c.DatabaseURL
	}
	if c.CoordinatorURL.IsZero() {
		c.CoordinatorURL = c.ListenURL
	}
	for _, name := range []string{listenURL, coordinatorURL} {
		if c.DatabaseURL.IsZero() && c.Explicit(name) {
			return fmt.Errorf("%s must be set together with %s: set both, or neither for a private PostgreSQL", name, databaseURL)
		}
	}
	if c.BlobURL == "" {
		c.BlobURL = "file://" + filepath.ToSlash(filepath.Join(c.DataDir, "media")) + "?create_dir=true&no_tmp_dir=true"
	}
	if c.MasterKeyFile == "" {
		c.MasterKeyFile = filepath.Join(c.DataDir, "master.key")
	}
	if (c.SMTPURL == "") != (c.SMTPFrom == "") {
		return fmt.Errorf("%s must be set together with %s: set both, or neither", smtpURL, smtpFrom)
	}
	if (c.OIDCIssuer == "") != (c.OIDCClientID == "") || (c.OIDCIssuer == "") != (c.OIDCSecretFile == "") {
		return fmt.Errorf("%s, %s and %s must be set together: set all, or none", oidcIssuer, oidcClientID, oidcSecretFile)
	}
	return c.fit()
}

// UnderLease returns the configuration with the sending lease of the database, which
// another daemon or an operator may have set. AdapterTimeout must fit that lease, too.
func (c Config) UnderLease(lease time.Duration) (Config, error) {
	c.SendingLease = lease
	if err := c.fit(); err != nil {
		return c, &Error{err}
	}
	return c, nil
}

func (c *Config) fit() error {
	longest := longestAttempt(c.SendingLease)
	if c.AdapterTimeout <= longest {
		return nil
	}
	if !c.Explicit(adapterTimeoutMS) {
		c.AdapterTimeout = longest
		return nil
	}
	return fmt.Errorf("%s must be at most %d with %s=%d, got %d, because a post could be sent twice: "+
		"lower it, or lengthen the lease", adapterTimeoutMS, longest.Milliseconds(),
		sendingLeaseSeconds, int(c.SendingLease/time.Second), c.AdapterTimeout.Milliseconds())
}

// longestAttempt returns the longest attempt that fits a lease. The rest of the lease is for
// the commit of the outcome. Leases below a minute, as in tests, leave half.
func longestAttempt(lease time.Duration) time.Duration {
	if lease < time.Minute {
		return lease / 2
	}
	return lease - 15*time.Second
}
