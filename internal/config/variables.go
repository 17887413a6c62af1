package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Names that more than one place speaks of.
const (
	configFile          = "AUTOPOST_CONFIG"
	databaseURL         = "DATABASE_URL"
	listenURL           = "AUTOPOST_LISTEN_URL"
	sendingLeaseSeconds = "SENDING_LEASE_SECONDS"
	claimedLeaseSeconds = "CLAIMED_LEASE_SECONDS"
	adapterTimeoutMS    = "ADAPTER_TIMEOUT_MS"
	maxMediaBytesImage  = "MAX_MEDIA_BYTES_IMAGE"
	maxMediaBytesVideo  = "MAX_MEDIA_BYTES_VIDEO"
	alertDeadThreshold  = "ALERT_DEAD_THRESHOLD"
	alertFailedPerm10M  = "ALERT_FAILED_PERM_10M"
	alertPausedChannels = "ALERT_PAUSED_CHANNELS"
	smtpURL             = "AUTOPOST_SMTP_URL"
	smtpFrom            = "AUTOPOST_SMTP_FROM"
)

// MasterKeyFile is the variable that names the file of the master key.
const MasterKeyFile = "AUTOPOST_MASTER_KEY_FILE"

// Variable is one name that an operator may set.
type Variable struct {
	Name string
	// Default is what holds when the variable is not set; empty means that nothing
	// does, and Meaning says what follows.
	Default string
	Meaning string

	set func(*Config, string) error
}

// variables are all there are, in the order of the reference.
var variables = []Variable{
	{databaseURL, "", "PostgreSQL 15 or newer. Not set: a private one is started under AUTOPOST_DATA_DIR from the machine's own binaries",
		dsn(func(c *Config) *DSN { return &c.DatabaseURL })},
	{listenURL, "", "a direct connection for LISTEN and migrations, when DATABASE_URL goes through a transaction-mode pooler. Not set: DATABASE_URL",
		dsn(func(c *Config) *DSN { return &c.ListenURL })},
	{"AUTOPOST_PG_BIN", "", "folder of initdb and postgres for the private PostgreSQL. Not set: the machine is searched",
		path(func(c *Config) *string { return &c.PostgresBin })},
	{"AUTOPOST_DATA_DIR", "./autopost-data", "private PostgreSQL, media files and master key of a single-machine install",
		path(func(c *Config) *string { return &c.DataDir })},
	{"AUTOPOST_LISTEN", "127.0.0.1:8080", "host:port of ingress, API, pages and health. Any host but loopback opens them to the network",
		hostPort(func(c *Config) *string { return &c.Listen })},
	{"AUTOPOST_PUBLIC_URL", "", "base URL by which platforms reach AUTOPOST_LISTEN, as https://autopost.example.org: bots are subscribed to their updates there. Not set: nothing is subscribed",
		baseURL(func(c *Config) *string { return &c.PublicURL })},
	{"AUTOPOST_METRICS_LISTEN", "", "host:port of Prometheus /metrics. Not set: on AUTOPOST_LISTEN",
		hostPort(func(c *Config) *string { return &c.MetricsListen })},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "", "base URL of an OpenTelemetry collector (OTLP over HTTP, like http://127.0.0.1:4318) that traces are sent to. Not set: no traces",
		baseURL(func(c *Config) *string { return &c.TracesEndpoint })},
	{"AUTOPOST_BLOB_URL", "", "media origin: file:///folder, s3://bucket?region=…, gs://bucket (by its interoperability keys), azblob://container. Not set: a folder in AUTOPOST_DATA_DIR",
		blobURL},
	{MasterKeyFile, "", "the keys that wrap sealed credentials, readable by its owner alone. Not set: master.key in AUTOPOST_DATA_DIR, made when it is first needed",
		path(func(c *Config) *string { return &c.MasterKeyFile })},
	{"AUTOPOST_TELEGRAM_API_URL", "https://api.telegram.org", "base URL of the Telegram Bot API",
		baseURL(func(c *Config) *string { return &c.TelegramAPIURL })},
	{"AUTOPOST_MAX_API_URL", "https://platform-api2.max.ru", "base URL of the MAX Bot API",
		baseURL(func(c *Config) *string { return &c.MAXAPIURL })},
	{"AUTOPOST_X_API_URL", "https://api.x.com", "base URL of the API of X",
		baseURL(func(c *Config) *string { return &c.XAPIURL })},
	{"AUTOPOST_YOUTUBE_API_URL", "https://www.googleapis.com", "base URL of the YouTube Data API and its upload host",
		baseURL(func(c *Config) *string { return &c.YouTubeAPIURL })},
	{"AUTOPOST_GOOGLE_TOKEN_URL", "https://oauth2.googleapis.com/token", "where refresh tokens of YouTube channels are exchanged",
		baseURL(func(c *Config) *string { return &c.GoogleTokenURL })},
	{"AUTOPOST_MAX_CA_FILE", "", "PEM bundle that is trusted for MAX besides the system's",
		path(func(c *Config) *string { return &c.MAXCAFile })},
	{"AUTOPOST_OUTBOUND_ALLOW", "", "networks (CIDR, separated by commas) that sources and media may come from although they are not public",
		prefixes},
	{smtpURL, "", "mail server for alerts: smtp://host:587 (STARTTLS), smtps://host:465, or smtp://host:25?tls=off. User and password are a credential of platform smtp. Not set: no mail",
		mailURL},
	{smtpFrom, "", "sender of alerts by mail, as in autopost@example.com",
		func(c *Config, value string) error { c.SMTPFrom = value; return nil }},
	{"AUTOPOST_LOG", "info", "debug, info, warn or error", logLevel},
	{"AUTOPOST_MIGRATE", "auto", "auto: serve brings the schema up to date; never: it only checks", migrate},
	{"PULL_CHUNK_SIZE", "100", "items of a source that go into one transaction, 1 to 200",
		number(1, 200, func(c *Config) *int { return &c.PullChunkSize })},
	{"DISPATCHER_LIMIT_PER_WORKSPACE", "100", "deliveries of a workspace that one claim takes, 1 to 1000",
		number(1, 1000, func(c *Config) *int { return &c.DispatcherLimitPerWorkspace })},
	{"DISPATCHER_SENDERS", "512", "deliveries that a daemon has in hand at once, from the claim to the commit, 1 to 10000. A group gets half of them at most, a workspace on one platform two thirds, a platform four fifths",
		number(1, 10_000, func(c *Config) *int { return &c.DispatcherSenders })},
	{maxMediaBytesImage, "10485760", "largest image that is taken, in bytes. Set: it is written to the database, for all daemons",
		number(1, 1<<40, func(c *Config) *int64 { return &c.MaxMediaBytesImage })},
	{maxMediaBytesVideo, "52428800", "largest video, audio or file that is taken, in bytes. Set: it is written to the database, for all daemons",
		number(1, 1<<40, func(c *Config) *int64 { return &c.MaxMediaBytesVideo })},
	{"DOWNLOAD_TIMEOUT_MS", "30000", "time for one download as a whole, in milliseconds",
		period(time.Millisecond, time.Hour, func(c *Config) *time.Duration { return &c.DownloadTimeout })},
	{sendingLeaseSeconds, "300", "how long a delivery may be in flight before it is recovered, in seconds. Set: it is written to the database, for all daemons",
		period(time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.SendingLease })},
	{claimedLeaseSeconds, "300", "how long a delivery may stay claimed without being sent, in seconds. Set: it is written to the database, for all daemons",
		period(time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.ClaimedLease })},
	{alertDeadThreshold, "1", "from how many dead deliveries on people are told; 0 for never. Set: it is written to the database, for all daemons",
		number(0, 1000000, func(c *Config) *int { return &c.AlertDeadThreshold })},
	{alertFailedPerm10M, "20", "people are told when more deliveries than this failed for good in 10 minutes; 0 for never. Set: it is written to the database, for all daemons",
		number(0, 1000000, func(c *Config) *int { return &c.AlertFailedPerm10M })},
	{alertPausedChannels, "10", "people are told when more channels than this are paused; 0 for never. Set: it is written to the database, for all daemons",
		number(0, 1000000, func(c *Config) *int { return &c.AlertPausedChannels })},
	{"MONITOR_INTERVAL_SECONDS", "60", "time between two rounds of the monitor, in seconds",
		period(time.Second, time.Hour, func(c *Config) *time.Duration { return &c.MonitorInterval })},
	{adapterTimeoutMS, "60000", "time for one attempt to send, in milliseconds. It must end 15 s before the sending lease (under a lease below 60 s: within half of it); not set, it is shortened to fit",
		period(time.Millisecond, 24*time.Hour, func(c *Config) *time.Duration { return &c.AdapterTimeout })},
}

// Variables returns all variables in the order of the reference.
func Variables() []Variable { return append([]Variable(nil), variables...) }

func dsn(field func(*Config) *DSN) func(*Config, string) error {
	return func(c *Config, text string) (err error) {
		*field(c), err = parseDSN(text)
		return err
	}
}

func path(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) (err error) {
		*field(c), err = filepath.Abs(text)
		return err
	}
}

func hostPort(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		_, port, err := net.SplitHostPort(text)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("%q is no host:port: write it like 127.0.0.1:8080", text)
		}
		*field(c) = text
		return nil
	}
}

// baseURL accepts what the operator sets, private addresses included; the text
// of a wrong one is not repeated, for it may hold a password.
func baseURL(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("it is no base URL: write it like https://host or http://127.0.0.1:9090/path, without a query")
		}
		*field(c) = strings.TrimRight(text, "/")
		return nil
	}
}

// mailURL takes no user: it would be shown where the configuration is.
func mailURL(c *Config, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" && u.RawQuery != "tls=off" {
		return errors.New("it is no mail server: write it like smtp://host:587 or smtps://host:465, and bind user and password as a credential of platform smtp")
	}
	c.SMTPURL = text
	return nil
}

func blobURL(c *Config, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return errors.New("it is no URL: write it like file:///var/lib/autopost/media or s3://bucket?region=eu-central-1")
	}
	switch u.Scheme {
	case "file", "s3", "gs", "azblob":
	default:
		return fmt.Errorf("the scheme %q is not known: use file, s3, gs or azblob", u.Scheme)
	}
	if u.Scheme == "file" && (u.Host != "" || u.Path == "") {
		return errors.New("a file URL needs an absolute path: write it with three slashes, like file:///var/lib/autopost/media")
	}
	c.BlobURL = text
	return nil
}

func prefixes(c *Config, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, addrErr := netip.ParseAddr(part)
			if addrErr != nil {
				return fmt.Errorf("%q is no network: write it like 10.1.0.0/16, several separated by commas", part)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		c.OutboundAllow = append(c.OutboundAllow, prefix.Masked())
	}
	return nil
}

func logLevel(c *Config, text string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[strings.ToLower(text)]
	if !ok {
		return fmt.Errorf("%q is no level: use debug, info, warn or error", text)
	}
	c.LogLevel = level
	return nil
}

func migrate(c *Config, text string) error {
	if text != "auto" && text != "never" {
		return fmt.Errorf("%q is not known: use auto or never", text)
	}
	c.Migrate = text == "auto"
	return nil
}

func number[N int | int64](least, most N, field func(*Config) *N) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("%q is no whole number from %d to %d: correct it", text, least, most)
		}
		*field(c) = N(n)
		return nil
	}
}

// period reads whole units, from one of them to most.
func period(unit, most time.Duration, field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > int64(most/unit) {
			return fmt.Errorf("%q is no whole number from 1 to %d: correct it", text, most/unit)
		}
		*field(c) = time.Duration(n) * unit
		return nil
	}
}
