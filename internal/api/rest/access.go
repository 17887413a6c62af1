package rest

import (
	"fmt"
	"slices"
	"strings"

	"autopost/internal/problem"
)

// The roles. Each role may do everything that the earlier ones may.
const (
	Viewer   = "viewer"
	Editor   = "editor"
	Approver = "approver"
	Operator = "operator"
	Owner    = "owner"
)

var roles = []string{Viewer, Editor, Approver, Operator, Owner}

// Need is what an operation requires of a key: this role or a later one, and this scope if the key has scopes.
type Need struct {
	// Role is "" for the operation that begins a session: it needs no key.
	Role  string
	Scope string
}

// access lists the requirement of each operation. An operation without an entry cannot be registered.
var access = map[string]Need{
	"list-posts":            {Viewer, "posts:read"},
	"get-post":              {Viewer, "posts:read"},
	"submit-post":           {Editor, "posts:write"},
	"plan-post":             {Viewer, "posts:read"},
	"list-recurrences":      {Viewer, "recurrences:read"},
	"get-recurrence":        {Viewer, "recurrences:read"},
	"create-recurrence":     {Editor, "recurrences:write"},
	"put-recurrence":        {Editor, "recurrences:write"},
	"remove-recurrence":     {Editor, "recurrences:write"},
	"list-occurrences":      {Viewer, "recurrences:read"},
	"reschedule-occurrence": {Editor, "recurrences:write"},
	"skip-occurrence":       {Editor, "recurrences:write"},
	"list-drafts":           {Editor, "drafts:read"},
	"get-draft":             {Editor, "drafts:read"},
	"create-draft":          {Editor, "drafts:write"},
	"put-draft":             {Editor, "drafts:write"},
	"remove-draft":          {Editor, "drafts:write"},
	"submit-draft":          {Editor, "drafts:write"},
	"skip-post":             {Operator, "deliveries:write"},
	"list-messages":         {Viewer, "messages:read"},
	"get-message":           {Viewer, "messages:read"},
	"list-runs":             {Viewer, "runs:read"},
	"list-submissions":      {Viewer, "submissions:read"},
	"get-submission":        {Viewer, "submissions:read"},
	"retry-submission":      {Operator, "submissions:write"},
	"edit-submission":       {Editor, "submissions:write"},
	"list-x-posts":          {Viewer, "xposts:read"},
	"get-x-post-config":     {Viewer, "xposts:read"},
	"put-x-post-config":     {Operator, "xposts:write"},
	"approve-x-post":        {Approver, "xposts:write"},
	"reject-x-post":         {Approver, "xposts:write"},
	"retry-x-post":          {Operator, "xposts:write"},
	"preview-x-post":        {Viewer, "xposts:read"},
	"get-x-post-stats":      {Viewer, "xposts:read"},
	"list-event-types":      {Viewer, "eventtypes:read"},
	"put-event-type":        {Operator, "eventtypes:write"},
	"submit-event":          {Editor, "posts:write"},
	"approve-submission":    {Approver, "submissions:write"},
	"reject-submission":     {Approver, "submissions:write"},
	"get-run":               {Viewer, "runs:read"},
	"upload-media":          {Editor, "media:write"},
	"proxy-media":           {Editor, "media:write"},
	"list-media":            {Viewer, "media:read"},
	"get-picture":           {Viewer, "media:read"},
	"list-deliveries":       {Viewer, "deliveries:read"},
	"get-delivery":          {Viewer, "deliveries:read"},
	"preview-delivery":      {Viewer, "deliveries:read"},
	"why-post":              {Viewer, "posts:read"},
	"list-avatars":          {Viewer, "eventtypes:read"},
	"get-avatar":            {Viewer, "eventtypes:read"},
	"put-avatar":            {Operator, "eventtypes:write"},
	"list-publish-jobs":     {Viewer, "filebus:read"},
	"get-publish-job":       {Viewer, "filebus:read"},
	"prepare-publish-job":   {Editor, "filebus:write"},
	"approve-publish-job":   {Approver, "filebus:write"},
	"reject-publish-job":    {Approver, "filebus:write"},
	"get-calendar":          {Viewer, "posts:read"},
	"list-calendar-days":    {Viewer, "posts:read"},
	"list-slots":            {Viewer, "posts:read"},
	"reschedule-post":       {Editor, "deliveries:write"},
	"reschedule-delivery":   {Editor, "deliveries:write"},
	"reschedule-deliveries": {Editor, "deliveries:write"},

	"requeue-deliveries": {Operator, "deliveries:write"},
	"skip-deliveries":    {Operator, "deliveries:write"},
	"resolve-delivery":   {Operator, "deliveries:write"},
	"release-stale":      {Operator, "deliveries:write"},

	"list-acts":       {Viewer, "acts:read"},
	"cancel-acts":     {Editor, "acts:write"},
	"edit-delivery":   {Editor, "acts:write"},
	"delete-delivery": {Editor, "acts:write"},
	"pin-delivery":    {Editor, "acts:write"},
	"unpin-delivery":  {Editor, "acts:write"},
	"edit-post":       {Editor, "acts:write"},
	"delete-post":     {Editor, "acts:write"},
	"pin-post":        {Editor, "acts:write"},
	"unpin-post":      {Editor, "acts:write"},

	"list-channels":       {Viewer, "channels:read"},
	"get-channel":         {Viewer, "channels:read"},
	"put-channel":         {Operator, "channels:write"},
	"pause-channel":       {Operator, "channels:write"},
	"resume-channel":      {Operator, "channels:write"},
	"enable-channel":      {Operator, "channels:write"},
	"disable-channel":     {Operator, "channels:write"},
	"rotate-channel-auth": {Owner, "channels:write"},
	"remove-channel":      {Owner, "channels:write"},
	"list-chats":          {Viewer, "chats:read"},
	"list-groups":         {Viewer, "groups:read"},
	"get-group":           {Viewer, "groups:read"},
	"put-group":           {Operator, "groups:write"},
	"pause-group":         {Operator, "groups:write"},
	"disable-group":       {Operator, "groups:write"},
	"enable-group":        {Operator, "groups:write"},

	"list-templates":   {Viewer, "templates:read"},
	"get-template":     {Viewer, "templates:read"},
	"preview-template": {Viewer, "templates:read"},
	"put-template":     {Editor, "templates:write"},
	"enable-template":  {Editor, "templates:write"},

	"list-endpoints":          {Viewer, "endpoints:read"},
	"get-endpoint":            {Viewer, "endpoints:read"},
	"put-endpoint":            {Owner, "endpoints:write"},
	"rotate-endpoint":         {Owner, "endpoints:write"},
	"disable-endpoint":        {Owner, "endpoints:write"},
	"put-workspace":           {Owner, "workspaces:write"},
	"list-sources":            {Viewer, "sources:read"},
	"why-source":              {Viewer, "sources:read"},
	"get-source":              {Viewer, "sources:read"},
	"put-source":              {Operator, "sources:write"},
	"test-source":             {Operator, "sources:write"},
	"fetch-source":            {Operator, "sources:write"},
	"list-webhooks":           {Viewer, "webhooks:read"},
	"get-webhook":             {Viewer, "webhooks:read"},
	"put-webhook":             {Owner, "webhooks:write"},
	"remove-webhook":          {Owner, "webhooks:write"},
	"test-webhook":            {Operator, "webhooks:write"},
	"replay-webhook":          {Operator, "webhooks:write"},
	"list-webhook-deliveries": {Viewer, "webhooks:read"},
	"why-webhook":             {Viewer, "webhooks:read"},
	"list-quotas":             {Viewer, "quotas:read"},
	"get-quota":               {Viewer, "quotas:read"},
	"put-quota":               {Operator, "quotas:write"},
	"lift-quota":              {Operator, "quotas:write"},
	"list-budgets":            {Viewer, "budgets:read"},
	"get-budget":              {Viewer, "budgets:read"},
	"put-budget":              {Owner, "budgets:write"},
	"list-retry-policies":     {Viewer, "policies:read"},
	"get-retry-policy":        {Viewer, "policies:read"},
	"put-retry-policy":        {Operator, "policies:write"},
	"list-workspaces":         {Viewer, "workspaces:read"},
	"get-workspace":           {Viewer, "workspaces:read"},
	"list-settings":           {Viewer, "settings:read"},
	"get-setting":             {Viewer, "settings:read"},
	"put-setting":             {Owner, "settings:write"},
	"export-config":           {Owner, "config:read"},
	"diff-config":             {Owner, "config:read"},
	"apply-config":            {Owner, "config:write"},

	"create-session":    {"", "sessions:write"},
	"end-session":       {Viewer, "sessions:write"},
	"get-me":            {Viewer, "me:read"},
	"confirm-me":        {Viewer, "me:write"},
	"list-users":        {Owner, "users:read"},
	"get-user":          {Owner, "users:read"},
	"put-user":          {Owner, "users:write"},
	"sign-out-user":     {Viewer, "users:write"},
	"list-invitations":  {Owner, "invitations:read"},
	"create-invitation": {Owner, "invitations:write"},
	"remove-invitation": {Owner, "invitations:write"},
	"create-key":        {Owner, "keys:write"},
	"create-workspace":  {Viewer, "workspaces:write"},

	"test-credential":   {Owner, "credentials:write"},
	"set-credential":    {Owner, "credentials:write"},
	"check-credential":  {Operator, "credentials:write"},
	"link-credential":   {Owner, "credentials:write"},
	"discover-chats":    {Operator, "credentials:write"},
	"remove-credential": {Owner, "credentials:write"},

	"list-credentials":   {Viewer, "credentials:read"},
	"get-credential":     {Viewer, "credentials:read"},
	"requeue-credential": {Operator, "credentials:write"},

	"list-alerts":          {Viewer, "alerts:read"},
	"get-alert":            {Viewer, "alerts:read"},
	"acknowledge-alert":    {Operator, "alerts:write"},
	"list-alert-targets":   {Operator, "alerts:read"},
	"get-alert-target":     {Operator, "alerts:read"},
	"put-alert-target":     {Owner, "alerts:write"},
	"remove-alert-target":  {Owner, "alerts:write"},
	"test-alert-target":    {Operator, "alerts:write"},
	"confirm-alert-target": {Operator, "alerts:write"},
	"get-health":           {Viewer, "health:read"},
	"get-summary":          {Viewer, "health:read"},
	"get-overview":         {Viewer, "health:read"},

	"list-moderation-chats":  {Operator, "moderation:read"},
	"get-moderation-chat":    {Operator, "moderation:read"},
	"put-moderation-chat":    {Owner, "moderation:write"},
	"remove-moderation-chat": {Owner, "moderation:write"},

	"get-queue":    {Viewer, "queue:read"},
	"get-forecast": {Viewer, "queue:read"},
	"list-events":  {Viewer, "events:read"},
	"link-raw":     {Owner, "events:write"},
	"list-audit":   {Operator, "audit:read"},
	"list-daemons": {Owner, "daemons:read"},

	"get-audit-head": {Operator, "audit:read"},
	"verify-audit":   {Operator, "audit:read"},

	"open-stream": {Viewer, "stream:read"},

	"list-bot-rules":   {Viewer, "bot:read"},
	"get-bot-rule":     {Viewer, "bot:read"},
	"put-bot-rule":     {Editor, "bot:write"},
	"enable-bot-rule":  {Editor, "bot:write"},
	"try-bot":          {Viewer, "bot:read"},
	"replay-bot":       {Viewer, "bot:read"},
	"lint-bot-rules":   {Viewer, "bot:read"},
	"export-bot-rules": {Viewer, "bot:read"},
	"import-bot-rules": {Editor, "bot:write"},
	"get-bot-report":   {Viewer, "bot:read"},
	"list-bot-chats":   {Viewer, "bot:read"},
	"get-bot-chat":     {Viewer, "bot:read"},
	"forget-bot-chat":  {Owner, "bot:write"},

	"list-keys":   {Owner, "keys:read"},
	"get-key":     {Owner, "keys:read"},
	"disable-key": {Owner, "keys:write"},
}

// stepUp lists the operations for which a person must have proved the password a short time ago.
var stepUp = []string{
	"approve-submission", "approve-x-post", "approve-publish-job", "requeue-deliveries", "requeue-credential", "resolve-delivery", "disable-key", "link-raw", "forget-bot-chat",
	"rotate-channel-auth", "rotate-endpoint",
	"put-setting",
	"apply-config",
	"remove-channel",
	"remove-webhook",
	"remove-alert-target",
	"remove-moderation-chat",
	"set-credential",
	"link-credential",
	"remove-credential",
	"create-key",
	"put-user",
	"create-invitation",
	"remove-invitation",
	"create-workspace",
}

// personal lists the operations about the session of the caller. A key has none.
var personal = []string{"end-session", "confirm-me", "sign-out-user"}

// installation lists the operations on what all workspaces share. Only a session of an owner of the installation may
// run them: a key belongs to one workspace.
var installation = []string{"list-daemons", "put-setting", "create-workspace"}

// Access returns the requirement of an operation; ok is false for an unknown operation.
func Access(operation string) (need Need, ok bool) {
	need, ok = access[operation]
	return need, ok
}

// Scopes returns all scopes in alphabetical order.
func Scopes() []string {
	var all []string
	for _, need := range access {
		all = append(all, need.Scope)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// role describes the required role.
func (n Need) role() string {
	if more := roles[slices.Index(roles, n.Role)+1:]; len(more) > 0 {
		return fmt.Sprintf("%s, or a higher one: %s", n.Role, strings.Join(more, ", "))
	}
	return n.Role
}

// words describe the requirement of an operation in the document.
func (n Need) words(operation string) string {
	switch {
	case n.Role == "":
		return "Needs the role none: this request begins a session."
	case slices.Contains(installation, operation):
		return fmt.Sprintf("Needs the role %s, and a session of an owner of the installation.", n.role())
	case slices.Contains(personal, operation):
		return fmt.Sprintf("Needs the role %s, and a session of a person.", n.role())
	}
	return fmt.Sprintf("Needs the role %s. A key with scopes needs the scope %s.", n.role(), n.Scope)
}

// refusal returns nil if the caller is allowed to run the operation.
// A dry run needs no password.
func (n Need) refusal(k Key, operation string, dryRun bool) *problem.Problem {
	who := "This key has"
	if k.UserID != "" {
		who = "You have"
	}
	if slices.Index(roles, k.Role) < slices.Index(roles, n.Role) {
		return problem.NotAllowed.Says("%s the role %s. The operation needs %s.", who, k.Role, n.role())
	}
	if k.UserID != "" && !k.Confirmed && !dryRun && slices.Contains(stepUp, operation) {
		return problem.StepUp.Says("The operation needs your password again. Confirm it on a page, then repeat the request.")
	}
	if len(k.Scopes) > 0 && !slices.Contains(k.Scopes, n.Scope) {
		return problem.NotAllowed.Says("This key has the scopes %s. The operation needs %s.", strings.Join(k.Scopes, ", "), n.Scope)
	}
	if k.UserID == "" && slices.Contains(personal, operation) {
		return problem.NotAllowed.Says("The operation is for people with a session. A key cannot run it.")
	}
	if !k.InstallationOwner && slices.Contains(installation, operation) {
		return problem.NotAllowed.Says("The operation needs a session of an owner of the installation.")
	}
	return nil
}
