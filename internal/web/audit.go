package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"autopost/internal/api"
)

// auditFilter is the filter of the list, as its address has it.
type auditFilter struct{ Action, Subject, Operator, From, Until, Cursor string }

func auditFilterOf(q url.Values) auditFilter {
	return auditFilter{Action: strings.TrimSpace(q.Get("action")), Subject: strings.TrimSpace(q.Get("subject")), Operator: strings.TrimSpace(q.Get("operator")),
		From: q.Get("from"), Until: q.Get("until"), Cursor: q.Get("cursor")}
}

// target returns the address of this list with further parameters.
func (f auditFilter) target(pairs ...string) string {
	all := append([]string{"action", f.Action, "subject", f.Subject, "operator", f.Operator, "from", f.From, "until", f.Until}, pairs...)
	return addressOf("/operations/audit", all...)
}

// auditLine is a row of the audit log.
type auditLine struct {
	ID       string          `json:"id"`
	Seq      int64           `json:"seq"`
	TS       time.Time       `json:"ts"`
	Operator string          `json:"operator"`
	Action   string          `json:"action"`
	Reason   string          `json:"reason"`
	Subject  string          `json:"subject"`
	Before   json.RawMessage `json:"before"`
	After    json.RawMessage `json:"after"`
}

// auditList is a page of the audit log.
type auditList struct {
	Filter auditFilter
	Rows   page[auditLine]
	Fault  string
	Head   api.AuditHead
	// Verdict is nil until the person asks for a check. Kept is the end of the log that it was checked against.
	Verdict *api.AuditVerdict
	Kept    string
}

func (s *server) audit(v *view) {
	q := v.r.URL.Query()
	list := auditList{Filter: auditFilterOf(q), Kept: strings.TrimSpace(q.Get("head"))}
	query := url.Values{}
	if list.Fault = v.days(query, list.Filter.From, list.Filter.Until); list.Fault == "" {
		target := addressOf("/audit", "limit", "50", "action", list.Filter.Action, "subject", list.Filter.Subject, "operator", list.Filter.Operator,
			"since", query.Get("since"), "until", query.Get("until"), "cursor", list.Filter.Cursor)
		if err := v.get(target, &list.Rows); v.fault(err) != "" && v.may("operator") {
			list.Fault = v.fault(err)
		} else if err != nil {
			v.fail(err)
			return
		}
	}
	if err := v.get("/audit/head", &list.Head); err != nil {
		v.fail(err)
		return
	}
	if q.Get("verify") != "" {
		if err := v.verify(&list); err != nil {
			v.fail(err)
			return
		}
	}
	status := http.StatusOK
	if list.Fault != "" {
		status = http.StatusUnprocessableEntity
	}
	v.show(status, "audit", auditPage(v, list), auditPanel(v, list))
}

// verify checks the audit log, and whether it still has the end that the person kept.
func (v *view) verify(list *auditList) error {
	seq, hash, _ := strings.Cut(list.Kept, ":")
	if list.Kept != "" {
		if _, wrong := strconv.ParseInt(seq, 10, 64); wrong != nil {
			list.Fault = v.t("operations.audit.head.wrong")
			return nil //nolint:nilerr // the fault is shown on the page
		}
	}
	list.Verdict = &api.AuditVerdict{}
	err := v.get(addressOf("/audit/verify", "seq", seq, "hash", hash), list.Verdict)
	if wrong := v.fault(err); wrong != "" {
		list.Fault, list.Verdict, err = v.t("operations.audit.head.wrong"), nil, nil
	}
	return err
}

// end is the end of the log as a person keeps it.
func (l auditList) end() string { return strconv.FormatInt(l.Head.Seq, 10) + ":" + l.Head.Hash }
