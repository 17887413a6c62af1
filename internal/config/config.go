// Package config turns the environment, and the file named by AUTOPOST_CONFIG,
// into a checked Config. It is the only package that reads either; every variable
// is listed once, in variables.go.
//
// A variable of the environment wins over the same name in the file, and an empty
// one counts as not set. A file that ends in .yaml or .yml is a flat YAML mapping,
// any other has lines NAME=value. Names that the file should not hold are errors:
// a misspelt limit must not pass for a default.
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

// Config is how this process was told to run. Load fills every field; names,
// defaults and limits stand in variables.go.
type Config struct {
	// DatabaseURL is the PostgreSQL to use; zero means a private one under DataDir.
	DatabaseURL DSN
	// ListenURL is a direct connection for LISTEN and migrations. It is DatabaseURL
	// unless set, so zero only together with it.
	ListenURL DSN
	// PostgresBin is the folder of initdb and postgres; empty means search.
	PostgresBin string
	// DataDir is absolute. Nothing is made there before it is needed.
	DataDir string
	// Listen is the host:port of ingress, API, pages and health.
	Listen string
	// MetricsListen is the host:port of /metrics; empty means on Listen.
	MetricsListen string
	// PublicURL is where platforms reach Listen, without a trailing slash; "" when nobody said.
	PublicURL string
	// TracesEndpoint is the base URL of an OTLP collector for traces; empty means that there are none.
	TracesEndpoint string
	// MasterKeyFile holds the keys that wrap sealed credentials. It is made when it is
	// first needed, unless the operator named it.
	MasterKeyFile string
	// BlobURL is the media origin, in the form of gocloud.dev/blob.
	BlobURL string
	// TelegramAPIURL, MAXAPIURL, XAPIURL and YouTubeAPIURL are base URLs without a trailing slash.
	TelegramAPIURL string
	MAXAPIURL      string
	XAPIURL        string
	YouTubeAPIURL  string
	// GoogleTokenURL is where refresh tokens are exchanged, without a trailing slash.
	GoogleTokenURL string
	// SMTPURL is the mail server for alerts, and SMTPFrom the sender; empty means none.
	SMTPURL  string
	SMTPFrom string
	// MAXCAFile is a PEM bundle trusted for MAX besides the system's; empty means none.
	MAXCAFile string
	// OutboundAllow are networks that the guarded client may reach although they are not public.
	OutboundAllow []netip.Prefix
	// LogLevel is the least that is logged.
	LogLevel slog.Level
	// Migrate says whether serve brings the schema up to date by itself.
	Migrate bool
	// PullChunkSize is how many items of a source go into one transaction.
	PullChunkSize int
	// DispatcherLimitPerWorkspace bounds one claim.
	DispatcherLimitPerWorkspace int
	// DispatcherSenders bounds the deliveries in hand.
	DispatcherSenders int
	// MaxMediaBytesImage and MaxMediaBytesVideo bound a download, in bytes.
	MaxMediaBytesImage int64
	MaxMediaBytesVideo int64
	// DownloadTimeout bounds one download of a medium as a whole.
	DownloadTimeout time.Duration
	// SendingLease and ClaimedLease are what the database grants, in whole seconds.
	SendingLease time.Duration
	ClaimedLease time.Duration
	// AlertDeadThreshold, AlertFailedPerm10M and AlertPausedChannels are from when on people are told.
	AlertDeadThreshold  int
	AlertFailedPerm10M  int
	AlertPausedChannels int
	// MonitorInterval is the time between two rounds of the monitor.
	MonitorInterval time.Duration
	// AdapterTimeout bounds one attempt. It always fits SendingLease.
	AdapterTimeout time.Duration

	explicit map[string]bool
}

// Explicit reports whether the variable was set rather than left to its default.
func (c Config) Explicit(name string) bool { return c.explicit[name] }

// Settings returns the rows of autopost.settings, key to value, that this
// process was explicitly told. The database decides by these, so a daemon that was
// told nothing must not overwrite them.
func (c Config) Settings() map[string]int {
	settings := map[string]int{}
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

// Fingerprint is a digest of what all daemons of an installation should be told alike.
func (c Config) Fingerprint() string {
	sum := sha256.Sum256(fmt.Append(nil, c.BlobURL, c.TelegramAPIURL, c.MAXAPIURL, c.XAPIURL, c.YouTubeAPIURL, c.GoogleTokenURL, c.SMTPURL, c.SMTPFrom, c.OutboundAllow,
		c.MaxMediaBytesImage, c.MaxMediaBytesVideo, c.DownloadTimeout, c.SendingLease, c.ClaimedLease, c.AdapterTimeout))
	return hex.EncodeToString(sum[:6])
}

// Load reads environ, in the form of os.Environ, and the file that it names. The
// error lists everything that is wrong, each with the variable and the remedy.
func Load(environ []string) (Config, error) {
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
			wrong = append(wrong, fmt.Errorf("%s is no variable of autopost: correct the name or remove it", name))
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
			wrong = append(wrong, fmt.Errorf("%s: %w", v.Name, err))
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

// asText writes a value of the file as the environment would.
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

// complete fills what follows from other fields and checks them against each other.
func (c *Config) complete() error {
	if c.ListenURL.IsZero() {
		c.ListenURL = c.DatabaseURL
	}
	if c.DatabaseURL.IsZero() && c.Explicit(listenURL) {
		return fmt.Errorf("%s: it is set but %s is not: set both, or neither for the private PostgreSQL", listenURL, databaseURL)
	}
	if c.BlobURL == "" {
		c.BlobURL = "file://" + filepath.ToSlash(filepath.Join(c.DataDir, "media")) + "?create_dir=true&no_tmp_dir=true"
	}
	if c.MasterKeyFile == "" {
		c.MasterKeyFile = filepath.Join(c.DataDir, "master.key")
	}
	if (c.SMTPURL == "") != (c.SMTPFrom == "") {
		return fmt.Errorf("%s and %s go together: set both, or neither", smtpURL, smtpFrom)
	}
	return c.fit()
}

// UnderLease is the configuration under the lease that the database grants, which
// another daemon or a person may have set. AdapterTimeout must fit that one too.
func (c Config) UnderLease(lease time.Duration) (Config, error) {
	c.SendingLease = lease
	err := c.fit()
	return c, err
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
	return fmt.Errorf("%s: %d ms does not fit %s=%d, where a post could go out twice: "+
		"set it to at most %d, or lengthen the lease", adapterTimeoutMS, c.AdapterTimeout.Milliseconds(),
		sendingLeaseSeconds, int(c.SendingLease/time.Second), longest.Milliseconds())
}

// longestAttempt is the time that an attempt may take under a lease: what remains
// is for its commit. Short leases, of tests, keep half.
func longestAttempt(lease time.Duration) time.Duration {
	if lease < time.Minute {
		return lease / 2
	}
	return lease - 15*time.Second
}
