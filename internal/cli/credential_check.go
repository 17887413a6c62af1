package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg"
	"autopost/internal/secret"
	"autopost/internal/table"
)

func credentialCheckCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Check a credential and its rights with the platform",
		Long: `Check a credential with its platform: the account, and the right to post to each of its
channels. Without a name the command checks all credentials of the workspace. It posts and
changes nothing on the platform. It exits 1 if a check fails.`,
		Example: `  autopost credential check
  autopost credential check news-bot`,
		Args: atMostOneArgument("credential name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error {
				list, err := credentialRows(ctx, d.store, &f.workspace)
				if err != nil {
					return err
				}
				if len(args) == 1 {
					list = slices.DeleteFunc(list, func(c credentialRow) bool { return c.AuthRef != args[0] })
					if len(list) == 0 {
						return unknownCredential(f.workspace, args[0])
					}
				}
				return d.checkAll(ctx, f.workspace, list, f.output)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func channelCheckCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "check ID",
		Short:   "Check with the platform that a channel can be posted to",
		Example: "  autopost channel check city",
		Args:    oneArgument("channel id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error {
				workspace, err := chooseWorkspace(ctx, d.store, f.workspace)
				if err != nil {
					return err
				}
				channels, err := d.store.ListChannels(ctx, workspace, listLimit)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(channels, func(c pg.ChannelRow) bool { return c.ChannelID == args[0] })
				if i < 0 {
					return unknownChannel(workspace, args[0])
				}
				c := channels[i]
				found, err := d.check(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform), []string{c.TargetID})
				if err != nil {
					return err
				}
				return printChecks([]credentialCheck{found}, f.output)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// credentialCheck is the platform's answer about a credential, or the reason why it gave no answer.
type credentialCheck struct {
	authRef  string
	platform autopost.Platform
	info     autopost.CredentialInfo
	// failure is nil if the platform answered.
	failure *autopost.Error
	// cause is the error that prevented access to the secret. It is nil if the secret was read.
	cause error
	// unsupported means that the adapter cannot check credentials. Only the secret was read.
	unsupported bool
}

// ok reports whether the credential is valid and may post to all targets.
func (c credentialCheck) ok() bool {
	return c.failure == nil && countMayPost(c.info.Rights) == len(c.info.Rights)
}

// checkAll checks credentials with all of their channels, and records and prints the answers.
func (d credentialTools) checkAll(ctx context.Context, workspace string, list []credentialRow, out output) error {
	all := make([]credentialCheck, 0, len(list))
	for _, c := range list {
		targets, err := d.targets(ctx, workspace, c.AuthRef, c.Platform)
		if err != nil {
			return err
		}
		found, err := d.check(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform), targets)
		if err != nil {
			return err
		}
		if err := d.record(ctx, workspace, found); err != nil {
			return err
		}
		all = append(all, found)
	}
	return printChecks(all, out)
}

func (d credentialTools) record(ctx context.Context, workspace string, found credentialCheck) error {
	if found.unsupported && found.failure == nil {
		return nil
	}
	return d.store.RecordCredentialCheck(ctx, workspace, found.authRef, found.info, found.failure)
}

// targets returns the targets of the channels that use a credential.
func (d credentialTools) targets(ctx context.Context, workspace, authRef, platform string) ([]string, error) {
	channels, err := d.store.ListChannels(ctx, workspace, listLimit)
	if err != nil {
		return nil, err
	}
	targets := []string{}
	for _, c := range channels {
		if c.AuthRef == authRef && c.Platform == platform {
			targets = append(targets, c.TargetID)
		}
	}
	return targets, nil
}

// check asks the platform about a credential. A problem of the credential is part of the
// answer; other problems are the error.
func (d credentialTools) check(ctx context.Context, workspace, authRef string, platform autopost.Platform, targets []string) (credentialCheck, error) {
	found := credentialCheck{authRef: authRef, platform: platform}
	adapters, err := daemon.Adapters(d.cfg)
	if err != nil {
		return found, err
	}
	checker, ok := adapters[platform].(autopost.Checker)
	found.unsupported = !ok
	found.info, found.failure, found.cause = d.vault.Check(ctx, checker, autopost.Delivery{WorkspaceID: workspace, AuthRef: authRef, Platform: platform}, targets)
	return found, nil
}

// checkedTarget is the answer about one target of a credential.
type checkedTarget struct {
	Credential string `json:"credential"`
	Account    string `json:"account"`
	Target     string `json:"target"`
	Title      string `json:"title"`
	OK         bool   `json:"ok"`
	Remark     string `json:"remark"`
}

// printChecks prints one row per target. It fails if a check failed.
func printChecks(all []credentialCheck, out output) error {
	var items []checkedTarget
	ok := true
	for _, c := range all {
		ok = ok && c.ok()
		for _, right := range c.info.Rights {
			items = append(items, checkedTarget{c.authRef, c.info.Account, right.Target, right.Title, right.MayPost, right.Reason})
		}
		switch {
		case c.failure != nil:
			items = append(items, checkedTarget{Credential: c.authRef, Account: c.info.Account, Remark: c.failure.Message})
		case c.unsupported:
			items = append(items, checkedTarget{Credential: c.authRef, OK: true, Remark: "the secret is stored; rights cannot be checked on this platform"})
		case len(c.info.Rights) == 0:
			items = append(items, checkedTarget{Credential: c.authRef, Account: c.info.Account, OK: true, Remark: "no channel uses it"})
		}
	}
	rows := make([][]any, 0, len(items))
	for _, i := range items {
		rows = append(rows, []any{i.Credential, i.Target, i.OK, i.Remark, i.Account, i.Title})
	}
	err := out.rows(items, table.Table{
		Columns: []string{"credential", "target", "ok", "remark", "account", "title"}, Details: []string{"account", "title"}, Rows: rows,
		Empty: "No credential to check: run autopost credential set NAME --platform telegram --from-file FILE.",
	})
	if err != nil {
		return err
	}
	if !ok {
		return errSilent
	}
	return nil
}

// maxDoctorTargets is the largest number of targets that doctor checks per credential.
const maxDoctorTargets = 20

// diagnoseCredentials checks the credentials of all active workspaces with their platforms.
func diagnoseCredentials(ctx context.Context, cfg config.Config, store *pg.Store) ([]pg.Check, error) {
	vault, err := daemon.NewVault(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	d := credentialTools{cfg, store, vault}
	checks := []pg.Check{d.diagnoseMasterKey(ctx)}
	workspaces, err := d.store.ListWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, workspace := range workspaces {
		list, err := d.store.ListCredentials(ctx, workspace, listLimit)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			targets, err := d.targets(ctx, workspace, c.AuthRef, c.Platform)
			if err != nil {
				return nil, err
			}
			found, err := d.check(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform), targets[:min(len(targets), maxDoctorTargets)])
			if err != nil {
				return nil, err
			}
			checks = append(checks, found.diagnosis("credential "+workspace+"/"+c.AuthRef))
		}
		missing, err := d.missingCredentials(ctx, workspace, list)
		if err != nil {
			return nil, err
		}
		checks = append(checks, missing...)
	}
	return checks, nil
}

// missingCredentials returns a failed check for each credential of enabled channels that is not bound for their
// platform.
func (d credentialTools) missingCredentials(ctx context.Context, workspace string, bound []pg.CredentialRow) ([]pg.Check, error) {
	channels, err := d.store.ListChannels(ctx, workspace, listLimit)
	if err != nil {
		return nil, err
	}
	platforms := map[string]string{}
	for _, c := range bound {
		platforms[c.AuthRef] = c.Platform
	}
	var checks []pg.Check
	seen := map[[2]string]bool{}
	for _, c := range channels {
		key := [2]string{c.AuthRef, c.Platform}
		platform, exists := platforms[c.AuthRef]
		if !c.Enabled || platform == c.Platform || seen[key] {
			continue
		}
		seen[key] = true
		check := pg.Check{
			Name:  "credential " + workspace + "/" + c.AuthRef,
			Found: autopost.CodeCredentialMissing + ": channel " + c.ChannelID + " uses it, and it does not exist",
			Remedy: fmt.Sprintf("run autopost credential set %s --platform %s --from-file FILE --workspace %s --reason new (x and youtube: credential link)",
				c.AuthRef, c.Platform, workspace),
		}
		if exists {
			check.Found = fmt.Sprintf("%s: channel %s of %s uses it, and it is for %s", autopost.CodeCredentialMissing, c.ChannelID, c.Platform, platform)
			check.Remedy = fmt.Sprintf("run autopost channel set %s --auth-ref NAME --workspace %s --reason corrected, with a credential of %s", c.ChannelID, workspace, c.Platform)
		}
		checks = append(checks, check)
	}
	return checks, nil
}

func (c credentialCheck) diagnosis(name string) pg.Check {
	check := pg.Check{Name: name, OK: c.ok()}
	switch {
	case c.failure != nil:
		check.Found, check.Remedy = c.failure.Code+": "+c.failure.Message, c.remedy()
	case c.unsupported:
		check.Found = "the secret is stored"
	default:
		check.Found = fmt.Sprintf("%s may post to %d of %s", c.info.Account, countMayPost(c.info.Rights), counted(len(c.info.Rights), "channel"))
		for _, right := range c.info.Rights {
			if !right.MayPost {
				check.Remedy = right.Target + ": " + right.Reason
				break
			}
		}
	}
	return check
}

// remedy returns the next step after a failure.
func (c credentialCheck) remedy() string {
	setAgain := "run autopost credential set " + c.authRef + " (x and youtube: credential link)"
	switch {
	case errors.Is(c.cause, autopost.ErrNoCredential):
		return "set the variable or file of its reference, for the daemon and for this command; or " + setAgain
	case c.cause != nil && c.failure.Code == autopost.CodeCredentialMissing:
		return "the sealed secret cannot be opened: follow the remedy of the check master key, or " + setAgain
	case c.failure.Code == autopost.CodeNetConnect, c.failure.Code == autopost.CodeUnknownOutcome:
		return fmt.Sprintf("check the network to the platform (name server, firewall, proxy) and %s", c.address())
	case c.failure.Code == autopost.CodeTLSUntrusted:
		return fmt.Sprintf("check who answers for the platform, the CA bundle of this machine (MAX: AUTOPOST_MAX_CA_FILE) and %s", c.address())
	case c.failure.Category == autopost.Transient:
		return "wait some minutes and run autopost credential check " + c.authRef
	}
	return "the platform must accept the secret: " + setAgain
}

// address returns the name of the variable with the platform's base URL.
func (c credentialCheck) address() string {
	return "AUTOPOST_" + strings.ToUpper(string(c.platform)) + "_API_URL"
}

// diagnoseMasterKey checks that the master key file contains all keys in use.
func (d credentialTools) diagnoseMasterKey(ctx context.Context) pg.Check {
	check := pg.Check{Name: "master key", OK: true, Found: "no secret is sealed"}
	used, err := d.store.ListMasterKeys(ctx)
	var missing []string
	if err == nil && len(used) > 0 {
		if missing, err = d.missingKeys(used); err == nil && len(missing) > 0 {
			err = fmt.Errorf("%s lacks keys of sealed secrets: %v", d.cfg.MasterKeyFile, missing)
		}
		check.Found = d.cfg.MasterKeyFile
	}
	if err == nil {
		return check
	}
	check.OK, check.Found = false, err.Error()
	switch {
	case errors.Is(err, secret.ErrExposed):
		check.Remedy = "run chmod 600 " + d.cfg.MasterKeyFile + ": its keys stay valid"
	case errors.Is(err, secret.ErrNoMasterKey), len(missing) > 0:
		check.Remedy = "restore the master key file; if it is lost, run autopost credential rewrap --new-key and set each credential again"
	default:
		check.Remedy = "correct the error, and keep the file: without its keys the sealed secrets are lost"
	}
	return check
}
