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

// Names that are used more than once.
const (
	configFile          = "AUTOPOST_CONFIG"
	databaseURL         = "DATABASE_URL"
	listenURL           = "AUTOPOST_LISTEN_URL"
	coordinatorURL      = "AUTOPOST_COORDINATOR_URL"
	sendingLeaseSeconds = "SENDING_LEASE_SECONDS"
	claimedLeaseSeconds = "CLAIMED_LEASE_SECONDS"
	adapterTimeoutMS    = "ADAPTER_TIMEOUT_MS"
	maxMediaBytesImage  = "MAX_MEDIA_BYTES_IMAGE"
	maxMediaBytesVideo  = "MAX_MEDIA_BYTES_VIDEO"
	alertDeadThreshold  = "ALERT_DEAD_THRESHOLD"
	alertFailedPerm10M  = "ALERT_FAILED_PERM_10M"
	alertPausedChannels = "ALERT_PAUSED_CHANNELS"
	globalXEnabled      = "GLOBAL_X_POSTING_ENABLED"
	globalXPerHour      = "GLOBAL_X_POSTING_RATE_PER_HOUR"
	globalXPerDay       = "GLOBAL_X_POSTING_RATE_PER_DAY"
	globalXModeration   = "GLOBAL_X_MODERATION_ENABLED"
	globalXAvatarID     = "GLOBAL_X_ACCOUNT_AVATAR_ID"
	smtpURL             = "AUTOPOST_SMTP_URL"
	smtpFrom            = "AUTOPOST_SMTP_FROM"
	oidcIssuer          = "AUTOPOST_OIDC_ISSUER"
	oidcClientID        = "AUTOPOST_OIDC_CLIENT_ID"
	oidcSecretFile      = "AUTOPOST_OIDC_CLIENT_SECRET_FILE"
)

// MasterKeyFile is the variable that names the file of the master key.
const MasterKeyFile = "AUTOPOST_MASTER_KEY_FILE"

// Variable describes one variable. The reference page lists all of them.
type Variable struct {
	Name string
	// Default is the value of an unset variable; empty means none, and Meaning says what follows.
	Default string
	// Unit is the unit or form of the value.
	Unit string
	// Meaning is what the value controls, with its bounds.
	Meaning string
	// Danger is what goes wrong with an unsuitable value.
	Danger string

	set func(*Config, string) error
}

// allDaemons ends the meaning of a variable that serve writes to the database.
const allDaemons = ". If it is set, serve writes it to the database for all daemons"

// variables lists all variables in the order of the reference page.
var variables = []Variable{
	{databaseURL, "", "connection string", "PostgreSQL 15 or newer; ?pool_max_conns=N bounds the connections of a daemon, one for LISTEN not counted (default 16). Unset: a private PostgreSQL under AUTOPOST_DATA_DIR, started from the binaries of this machine",
		"another database is another installation with its own queue",
		dsn(func(c *Config) *DSN { return &c.DatabaseURL })},
	{listenURL, "", "connection string", "direct connection for LISTEN and migrations, if DATABASE_URL uses a pooler in transaction mode. Unset: DATABASE_URL",
		"through such a pooler LISTEN gets no notifications, and posts wait for the next poll",
		dsn(func(c *Config) *DSN { return &c.ListenURL })},
	{coordinatorURL, "", "connection string", "coordinator of a Citus cluster, for migrations and event partitions, if DATABASE_URL leads to a worker (docs/operate/scale.md). Unset: AUTOPOST_LISTEN_URL",
		"without it a daemon beside a worker cannot migrate or make partitions",
		dsn(func(c *Config) *DSN { return &c.CoordinatorURL })},
	{"AUTOPOST_PG_BIN", "", "path", "folder of initdb and postgres for the private PostgreSQL. Unset: the machine is searched",
		"binaries of another major version cannot open the existing data",
		path(func(c *Config) *string { return &c.PostgresBin })},
	{"AUTOPOST_DATA_DIR", "./autopost-data", "path", "folder of the private PostgreSQL, the media files and the master key. Only serve, demo and migrate create a database in it",
		"the default depends on the current folder; another folder is an empty installation",
		path(func(c *Config) *string { return &c.DataDir })},
	{"AUTOPOST_LISTEN", "127.0.0.1:8080", "host:port", "address of ingress, API, pages and health",
		"any host but loopback opens them to the network: put TLS in front",
		hostPort(func(c *Config) *string { return &c.Listen })},
	{"AUTOPOST_PUBLIC_URL", "", "URL", "base URL by which platforms and people reach AUTOPOST_LISTEN, like https://autopost.example.org. The daemon subscribes bots there. Unset: no subscriptions",
		"with a wrong URL bots get no updates",
		baseURL(func(c *Config) *string { return &c.PublicURL })},
	{"AUTOPOST_METRICS_LISTEN", "", "host:port", "address of Prometheus /metrics. Unset: AUTOPOST_LISTEN, for requests from the same machine only",
		"/metrics needs no key: do not open it to the internet",
		hostPort(func(c *Config) *string { return &c.MetricsListen })},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "", "URL", "base URL of an OpenTelemetry collector (OTLP over HTTP) for traces, like http://127.0.0.1:4318. Unset: no traces",
		"traces contain the ids of posts and channels",
		baseURL(func(c *Config) *string { return &c.TracesEndpoint })},
	{"AUTOPOST_BLOB_URL", "", "URL", "media store: file:///folder, s3://bucket?region=…, gs://bucket (with interoperability keys), azblob://container. Unset: a folder in AUTOPOST_DATA_DIR",
		"all daemons must use the same store: a change hides the media of waiting posts",
		blobURL},
	{MasterKeyFile, "", "path", "file with the keys that wrap sealed credentials, readable only by its owner. Unset: master.key in AUTOPOST_DATA_DIR, created when it is first needed",
		"without this file the sealed credentials are lost: back it up apart from the database",
		path(func(c *Config) *string { return &c.MasterKeyFile })},
	{"AUTOPOST_TELEGRAM_API_URL", "https://api.telegram.org", "URL", "base URL of the Telegram Bot API",
		"the server gets the bot tokens", baseURL(func(c *Config) *string { return &c.TelegramAPIURL })},
	{"AUTOPOST_MAX_API_URL", "https://platform-api2.max.ru", "URL", "base URL of the MAX Bot API",
		"the server gets the bot tokens", baseURL(func(c *Config) *string { return &c.MAXAPIURL })},
	{"AUTOPOST_X_API_URL", "https://api.x.com", "URL", "base URL of the X API",
		"the server gets the access tokens", baseURL(func(c *Config) *string { return &c.XAPIURL })},
	{"AUTOPOST_YOUTUBE_API_URL", "https://www.googleapis.com", "URL", "base URL of the YouTube Data API and of its uploads",
		"the server gets the access tokens", baseURL(func(c *Config) *string { return &c.YouTubeAPIURL })},
	{"AUTOPOST_GOOGLE_TOKEN_URL", "https://oauth2.googleapis.com/token", "URL", "token endpoint for the refresh tokens of YouTube channels",
		"the server gets the refresh tokens and client secrets", baseURL(func(c *Config) *string { return &c.GoogleTokenURL })},
	{"AUTOPOST_MAX_CA_FILE", "", "path", "PEM bundle that is trusted for MAX in addition to the system's. Unset: none",
		"each certificate authority in it can impersonate MAX", path(func(c *Config) *string { return &c.MAXCAFile })},
	{"AUTOPOST_OUTBOUND_ALLOW", "", "CIDR list", "private networks that sources, media and webhooks may use, separated by commas. Unset: none",
		"who can set a URL in autopost can reach these networks", prefixes},
	{smtpURL, "", "URL", "mail server for alerts: smtp://host:587 (STARTTLS), smtps://host:465, or smtp://host:25?tls=off. User and password are a credential of platform smtp. Unset: no mail",
		"tls=off sends the mail and the password unencrypted", mailURL},
	{smtpFrom, "", "mail address", "sender of alert mails, like autopost@example.com. It is set together with AUTOPOST_SMTP_URL",
		"many servers reject a sender of another domain", func(c *Config, value string) error { c.SMTPFrom = value; return nil }},
	{oidcIssuer, "", "URL", "identity provider by which people sign in (OpenID Connect), like https://login.example.org. Register AUTOPOST_PUBLIC_URL/login/oidc/callback there. Unset: passwords only",
		"who controls the provider can sign in as each person", baseURL(func(c *Config) *string { return &c.OIDCIssuer })},
	{oidcClientID, "", "text", "name of autopost at the identity provider",
		"with the name of another client its tokens sign in here", func(c *Config, value string) error { c.OIDCClientID = value; return nil }},
	{oidcSecretFile, "", "path", "file with the secret of that client, readable only by its owner",
		"who reads it can ask the provider in the name of autopost", path(func(c *Config) *string { return &c.OIDCSecretFile })},
	{"AUTOPOST_LOG", "info", "keyword", "lowest log level: debug, info, warn or error",
		"debug writes many lines for each delivery", logLevel},
	{"AUTOPOST_MIGRATE", "auto", "keyword", "auto: serve brings the schema up to date; never: serve only checks it",
		"with auto the first new daemon migrates while older daemons may still run", migrate},
	{"PULL_CHUNK_SIZE", "100", "items", "items of a source in one transaction, 50 to 200",
		"large values hold locks for longer; small ones make long feeds slow",
		number(50, 200, func(c *Config) *int { return &c.PullChunkSize })},
	{"DISPATCHER_LIMIT_PER_WORKSPACE", "100", "deliveries", "deliveries of a workspace in one claim, 1 to 1000",
		"large values let one daemon hold deliveries that another could send",
		number(1, 1000, func(c *Config) *int { return &c.DispatcherLimitPerWorkspace })},
	{"DISPATCHER_SENDERS", "512", "deliveries",
		"deliveries in flight at once in a daemon, 1 to 10000. A rate group gets at most half of them, a workspace on one platform two thirds, a platform four fifths",
		"each needs memory and a connection to its platform",
		number(1, 10_000, func(c *Config) *int { return &c.DispatcherSenders })},
	{maxMediaBytesImage, "10485760", "bytes", "largest accepted image, 1 to 1099511627776" + allDaemons,
		"platforms reject larger images than they allow", number(1, 1<<40, func(c *Config) *int64 { return &c.MaxMediaBytesImage })},
	{maxMediaBytesVideo, "52428800", "bytes", "largest accepted video, audio or other file, 1 to 1099511627776" + allDaemons,
		"large files fill the media store", number(1, 1<<40, func(c *Config) *int64 { return &c.MaxMediaBytesVideo })},
	{"DOWNLOAD_TIMEOUT_MS", "30000", "milliseconds", "time for the whole download of one medium, 1 to 3600000",
		"if it is too short for a slow server, every download fails", period(time.Millisecond, time.Hour, func(c *Config) *time.Duration { return &c.DownloadTimeout })},
	{sendingLeaseSeconds, "300", "seconds", "time that a delivery may be in flight before it is recovered, 1 to 86400" + allDaemons,
		"too short: a slow post can be sent twice; too long: a post of a lost daemon waits for it",
		period(time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.SendingLease })},
	{claimedLeaseSeconds, "300", "seconds", "time that a delivery may be claimed before its call starts, 1 to 86400" + allDaemons,
		"too short: claims are released before they start; too long: deliveries of a lost daemon wait",
		period(time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.ClaimedLease })},
	{alertDeadThreshold, "1", "deliveries", "alert when at least this many deliveries are dead, 0 to 1000000; 0: no alert" + allDaemons,
		"0 hides lost posts", number(0, 1000000, func(c *Config) *int { return &c.AlertDeadThreshold })},
	{alertFailedPerm10M, "20", "deliveries", "alert when more than this many deliveries failed permanently in 10 minutes, 0 to 1000000; 0: no alert" + allDaemons,
		"0 hides rejected posts", number(0, 1000000, func(c *Config) *int { return &c.AlertFailedPerm10M })},
	{alertPausedChannels, "10", "channels", "alert when more than this many channels are paused, 0 to 1000000; 0: no alert" + allDaemons,
		"0 hides paused channels", number(0, 1000000, func(c *Config) *int { return &c.AlertPausedChannels })},
	{globalXEnabled, "true", "true or false", "false holds the X channel of domain events: no call starts" + allDaemons,
		"false also holds ordinary posts of that channel", boolean(func(c *Config) *bool { return &c.GlobalXPostingEnabled })},
	{globalXPerHour, "", "posts", "ceiling for posts of that channel per hour, 1 to 1000000. Unset: the configuration of Global X decides, 8 by default" + allDaemons,
		"X limits or suspends accounts that post too much", number(1, 1_000_000, func(c *Config) *int { return &c.GlobalXRatePerHour })},
	{globalXPerDay, "", "posts", "ceiling for posts of that channel per day, 1 to 1000000. Unset: the configuration of Global X decides, 30 by default" + allDaemons,
		"X limits or suspends accounts that post too much", number(1, 1_000_000, func(c *Config) *int { return &c.GlobalXRatePerDay })},
	{globalXModeration, "false", "true or false", "true makes all events of that channel wait for a decision; false leaves it to the configuration of Global X" + allDaemons,
		"with false an event goes out without a look, unless the configuration says otherwise", boolean(func(c *Config) *bool { return &c.GlobalXModeration })},
	{globalXAvatarID, "", "id", "avatar whose X channel gets domain events, unless the configuration of Global X names a channel. Unset: the configuration must" + allDaemons,
		"without either, events fail with no_x_channel", func(c *Config, value string) error { c.GlobalXAvatarID = value; return nil }},
	{"MONITOR_INTERVAL_SECONDS", "60", "seconds", "time between two polls of the monitor, 1 to 3600",
		"long intervals delay recovery and alerts", period(time.Second, time.Hour, func(c *Config) *time.Duration { return &c.MonitorInterval })},
	{adapterTimeoutMS, "60000", "milliseconds",
		"time for one attempt to send, 1 to 86400000. It must end 15 s before the sending lease; under a lease below 60 s, within half of it. Unset: it is shortened to fit",
		"if it is too short for large media, their outcomes become unknown",
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
			return fmt.Errorf("must be host:port, got %q: write it like 127.0.0.1:8080", text)
		}
		*field(c) = text
		return nil
	}
}

// baseURL accepts private addresses, too. Its error does not contain the text, because that
// may contain a password.
func baseURL(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("must be a base URL: write it like https://host or http://127.0.0.1:9090/path, without a query")
		}
		*field(c) = strings.TrimRight(text, "/")
		return nil
	}
}

// mailURL rejects a user, because the configuration is not secret.
func mailURL(c *Config, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" && u.RawQuery != "tls=off" {
		return errors.New("must be a mail server: write it like smtp://host:587 or smtps://host:465, and store user and password as a credential of platform smtp")
	}
	c.SMTPURL = text
	return nil
}

func blobURL(c *Config, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return errors.New("must be a URL: write it like file:///var/lib/autopost/media or s3://bucket?region=eu-central-1")
	}
	switch u.Scheme {
	case "file", "s3", "gs", "azblob":
	default:
		return fmt.Errorf("must have the scheme file, s3, gs or azblob, got %q", u.Scheme)
	}
	if u.Scheme == "file" && (u.Host != "" || u.Path == "") {
		return errors.New("must have an absolute path: write it with three slashes, like file:///var/lib/autopost/media")
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
				return fmt.Errorf("must list networks, got %q: write them like 10.1.0.0/16, separated by commas", part)
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
		return fmt.Errorf("must be debug, info, warn or error, got %q", text)
	}
	c.LogLevel = level
	return nil
}

func migrate(c *Config, text string) error {
	if text != "auto" && text != "never" {
		return fmt.Errorf("must be auto or never, got %q", text)
	}
	c.Migrate = text == "auto"
	return nil
}

func number[N int | int64](least, most N, field func(*Config) *N) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("must be a whole number from %d to %d, got %q", least, most, text)
		}
		*field(c) = N(n)
		return nil
	}
}

// boolean parses true or false.
func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text != "true" && text != "false" {
			return fmt.Errorf("must be true or false, got %q", text)
		}
		*field(c) = text == "true"
		return nil
	}
}

// period parses a whole number of units, from 1 unit to most.
func period(unit, most time.Duration, field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > int64(most/unit) {
			return fmt.Errorf("must be a whole number from 1 to %d, got %q", most/unit, text)
		}
		*field(c) = time.Duration(n) * unit
		return nil
	}
}
