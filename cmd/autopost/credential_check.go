package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/pg"
	"autopost/internal/secret"
)

func credentialCheckCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Ask the platform whose a credential is, and whether it may post to each of its channels",
		Long: `Ask the platform whose a credential is, and whether it may post to each of its channels;
without a name, all of the workspace. Nothing is posted or changed there. Exits 1 if
anything is wrong.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse{fmt.Errorf("%s takes one name of a credential, or none", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error {
				list, err := credentialRows(ctx, d.store, &workspace)
				if err != nil {
					return err
				}
				if len(args) == 1 {
					list = slices.DeleteFunc(list, func(c credentialRow) bool { return c.AuthRef != args[0] })
					if len(list) == 0 {
						return unknownCredential(workspace, args[0])
					}
				}
				return d.checkAll(ctx, workspace, list, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func channelCheckCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check ID",
		Short: "Ask the platform whether a channel's credential may post there",
		Args:  oneArgument("id of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error {
				var err error
				if workspace, err = chooseWorkspace(ctx, d.store, workspace); err != nil {
					return err
				}
				channels, err := d.store.ListChannels(ctx, workspace, mostRows)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(channels, func(c pg.ChannelRow) bool { return c.ChannelID == args[0] })
				if i < 0 {
					return fmt.Errorf("workspace %s has no channel %q: autopost channel list names them", workspace, args[0])
				}
				c := channels[i]
				found, err := d.check(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform), []string{c.TargetID})
				if err != nil {
					return err
				}
				return printChecks([]checked{found}, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// platformPatience is how long a platform may take for one question.
const platformPatience = 20 * time.Second

// checked is what the platform said of a credential, or why it could not be asked.
type checked struct {
	authRef  string
	platform autopost.Platform
	standing autopost.Standing
	// failure is nil where the platform answered.
	failure *autopost.Error
	// why is the error by which there was no secret to ask with; nil where there was one.
	why error
	// unasked says that the platform cannot be asked: the secret is there, and that is all that is known.
	unasked bool
}

// well says that nothing needs doing.
func (c checked) well() bool {
	return c.failure == nil && countMayPost(c.standing.Rights) == len(c.standing.Rights)
}

// checkAll asks about credentials with all of their channels, keeps what is said, and tells it.
func (d desk) checkAll(ctx context.Context, workspace string, list []credentialRow, asJSON bool) error {
	all := make([]checked, 0, len(list))
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
	return printChecks(all, asJSON)
}

func (d desk) record(ctx context.Context, workspace string, found checked) error {
	if found.unasked && found.failure == nil {
		return nil
	}
	return d.store.RecordCredentialCheck(ctx, workspace, found.authRef, found.standing, found.failure)
}

// targets are those of the channels that use a credential.
func (d desk) targets(ctx context.Context, workspace, authRef, platform string) ([]string, error) {
	channels, err := d.store.ListChannels(ctx, workspace, mostRows)
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

// check asks the platform. The error is of our own side; what is wrong with the
// credential is the answer.
func (d desk) check(ctx context.Context, workspace, authRef string, platform autopost.Platform, targets []string) (checked, error) {
	found := checked{authRef: authRef, platform: platform}
	speakers, err := adapters(d.cfg)
	if err != nil {
		return found, err
	}
	checker, ok := speakers[platform].(autopost.Checker)
	found.unasked = !ok
	secret, err := d.vault.Credential(ctx, workspace, authRef, platform)
	found.why, found.failure = err, failureOf(err)
	if ok && found.failure == nil {
		ctx, cancel := context.WithTimeout(ctx, platformPatience+time.Duration(len(targets))*time.Second)
		defer cancel()
		of := autopost.Delivery{WorkspaceID: workspace, AuthRef: authRef, Platform: platform}
		found.standing, found.failure = renewing(ctx, d.vault, of, secret, func(secret autopost.Secret) (autopost.Standing, *autopost.Error) {
			return checker.Check(ctx, secret, targets)
		})
	}
	return found, nil
}

// renewing asks the platform, once more when it refuses a token that can be renewed.
func renewing[Answer any](
	ctx context.Context, vault *credential.Vault, of autopost.Delivery, secret autopost.Secret, ask func(autopost.Secret) (Answer, *autopost.Error),
) (Answer, *autopost.Error) {
	answer, failure := ask(secret)
	if failure == nil || failure.Category != autopost.Permanent || failure.Scope != autopost.ScopeChannel {
		return answer, failure
	}
	renewed, err := vault.Renew(ctx, of, secret, *failure)
	switch {
	case err != nil:
		return answer, failureOf(err)
	case renewed.IsZero():
		return answer, failure
	}
	return ask(renewed)
}

// failureOf says why there is no secret that could be used; nil where there is one.
func failureOf(err error) *autopost.Error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*credential.Refused](err); ok {
		return &refused.Failure
	}
	return &autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: autopost.CodeCredentialMissing, Known: true, Message: err.Error(),
	}
}

// printChecks prints a row a target, and exits 1 unless all is well.
func printChecks(all []checked, asJSON bool) error {
	var rows [][]any
	well := true
	for _, c := range all {
		well = well && c.well()
		for _, right := range c.standing.Rights {
			rows = append(rows, []any{c.authRef, c.standing.Account, right.Target, right.Title, right.MayPost, right.Reason})
		}
		switch {
		case c.failure != nil:
			rows = append(rows, []any{c.authRef, c.standing.Account, "", "", false, c.failure.Message})
		case c.unasked:
			rows = append(rows, []any{c.authRef, "", "", "", true, "the secret is there; this platform is not asked about rights"})
		case len(c.standing.Rights) == 0:
			rows = append(rows, []any{c.authRef, c.standing.Account, "", "", true, "no channel uses it"})
		}
	}
	if err := printTable(os.Stdout, asJSON, []string{"credential", "account", "target", "title", "ok", "remark"}, rows); err != nil {
		return err
	}
	if !well {
		return errSilent
	}
	return nil
}

// mostTargetsOfDoctor bounds the calls to platforms for one credential of one look.
const mostTargetsOfDoctor = 20

// diagnoseCredentials asks the platforms about the credentials of all active
// workspaces, and about some of their channels each.
func diagnoseCredentials(ctx context.Context, cfg config.Config, store *pg.Store) ([]pg.Check, error) {
	vault, err := newVault(cfg, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	d := desk{cfg, store, vault}
	checks := []pg.Check{d.diagnoseMasterKey(ctx)}
	workspaces, err := d.store.ListWorkspaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, workspace := range workspaces {
		list, err := d.store.ListCredentials(ctx, workspace, mostRows)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			targets, err := d.targets(ctx, workspace, c.AuthRef, c.Platform)
			if err != nil {
				return nil, err
			}
			found, err := d.check(ctx, workspace, c.AuthRef, autopost.Platform(c.Platform), targets[:min(len(targets), mostTargetsOfDoctor)])
			if err != nil {
				return nil, err
			}
			checks = append(checks, found.diagnosis("credential "+workspace+"/"+c.AuthRef))
		}
	}
	return checks, nil
}

func (c checked) diagnosis(name string) pg.Check {
	check := pg.Check{Name: name, OK: c.well()}
	switch {
	case c.failure != nil:
		check.Found, check.Remedy = c.failure.Code+": "+c.failure.Message, c.remedy()
	case c.unasked:
		check.Found = "the secret is there"
	default:
		check.Found = fmt.Sprintf("%s may post to %d of %d channels", c.standing.Account, countMayPost(c.standing.Rights), len(c.standing.Rights))
		for _, right := range c.standing.Rights {
			if !right.MayPost {
				check.Remedy = right.Target + ": " + right.Reason
				break
			}
		}
	}
	return check
}

// remedy is what to do about a failure.
func (c checked) remedy() string {
	anew := "autopost credential set " + c.authRef + ", or link where the platform has that"
	switch {
	case errors.Is(c.why, credential.ErrNone):
		return "set what its reference names, for the daemon and for this command, or give the secret by " + anew
	case c.why != nil && c.failure.Code == autopost.CodeCredentialMissing:
		return "its sealed secret cannot be opened: put right what the line master key says, or give the secret anew by " + anew
	case c.failure.Code == autopost.CodeNetConnect, c.failure.Code == autopost.CodeUnknownOutcome:
		return fmt.Sprintf("look at the way from here to the platform (name server, firewall, proxy), and at %s", c.address())
	case c.failure.Code == autopost.CodeTLSUntrusted:
		return fmt.Sprintf("look who answers for the platform, at the CA bundle of this machine (of MAX: AUTOPOST_MAX_CA_FILE), and at %s", c.address())
	case c.failure.Category == autopost.Transient:
		return "ask again in some minutes: autopost credential check " + c.authRef
	}
	return "give a secret that the platform takes by " + anew
}

// address names the variable that says where the platform of a credential is.
func (c checked) address() string {
	return "AUTOPOST_" + strings.ToUpper(string(c.platform)) + "_API_URL"
}

// diagnoseMasterKey looks whether every sealed secret can be opened here.
func (d desk) diagnoseMasterKey(ctx context.Context) pg.Check {
	check := pg.Check{Name: "master key", OK: true, Found: "no secret is sealed"}
	used, err := d.store.ListMasterKeys(ctx)
	var missing []string
	if err == nil && len(used) > 0 {
		if missing, err = d.missingKeys(used); err == nil && len(missing) > 0 {
			err = fmt.Errorf("secrets are sealed under keys that %s does not hold: %v", d.cfg.MasterKeyFile, missing)
		}
		check.Found = d.cfg.MasterKeyFile
	}
	if err == nil {
		return check
	}
	check.OK, check.Found = false, err.Error()
	switch {
	case errors.Is(err, secret.ErrExposed):
		check.Remedy = "chmod 600 " + d.cfg.MasterKeyFile + ": then its key is good as before"
	case errors.Is(err, secret.ErrNoMasterKey), len(missing) > 0:
		check.Remedy = "put the file of the master key back; if it is lost, autopost credential rewrap --new-key, and give each credential anew"
	default:
		check.Remedy = "put right what is found, and keep the file: without its keys the sealed secrets are lost"
	}
	return check
}
