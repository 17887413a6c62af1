package mutation

// edit replaces code in a file of the repository. The old text stands there once.
type edit struct{ file, old, new string }

// plant is a bug in the program's Go code.
type plant struct {
	bug   string
	edits []edit
	// scenario must complain, in words that caught finds.
	scenario string
	caught   string
}

// fixed are those that an ordinary run plants, by their bug; a long run plants all.
var fixed = []string{
	"the outcome of a success is not committed",
	"a call whose bytes were written counts as not made",
}

var plants = []plant{
	{
		bug: "the outcome of a success is not committed",
		edits: []edit{{
			"internal/dispatch/commit.go", "\tvar answer Commit\n\tstalled := false\n",
			"\tvar answer Commit\n\tif res.outcome.OK {\n\t\treturn true\n\t}\n\tstalled := false\n",
		}},
		scenario: "answers that are lost", caught: "what is in doubt is held",
	},
	{
		bug: "a stale answer is not taken, and the outcome is committed again",
		edits: []edit{{
			"internal/dispatch/commit.go", "\t\treturn err\n\t})\n\tif stalled {",
			"\t\tif err == nil && !answer.Applied {\n\t\t\terr = errors.New(answer.Reason)\n\t\t}\n\t\treturn err\n\t})\n\tif stalled {",
		}},
		scenario: "claim that is taken away", caught: "a stale outcome is reported once",
	},
	{
		bug: "a batch is committed under the token of its first delivery",
		edits: []edit{{
			"internal/dispatch/commit.go", "\treturn d.deps.Store.CommitOutcomeBatch(",
			"\tfor i := range results {\n\t\tresults[i].ClaimToken = results[0].ClaimToken\n\t}\n\treturn d.deps.Store.CommitOutcomeBatch(",
		}},
		scenario: "commits that come together", caught: "each is sent, once|nothing is in doubt|select not exists",
	},
	{
		bug: "the answers of a batch are shifted by one",
		edits: []edit{{
			"internal/worker/batcher.go", "value: answers[i]}", "value: answers[(i+1)%len(answers)]}",
		}},
		scenario: "starts that come together", caught: "copies|copy|each is sent, once|nothing is in doubt|not within",
	},
	{
		bug: "a step that was made is not recorded",
		edits: []edit{{
			"internal/dispatch/send.go", "\t\t\treturn until.during(func() error { return d.acknowledge(ctx, a, step, until) })\n", "\t\t\treturn nil\n",
		}},
		scenario: "series that is cut off", caught: "a step that was made is not made again",
	},
	{
		bug: "the parts of a thread reply to nothing",
		edits: []edit{{
			"internal/adapter/steps.go", "send(ctx, step, done.first(step.ReplyTo))", "send(ctx, step, \"\")",
		}},
		scenario: "series that is cut off", caught: "a part replies to the part before",
	},
	{
		bug: "a lease is not renewed while a series goes on",
		edits: []edit{{
			"internal/dispatch/send.go", "\treturn d.extendLease(ctx, a, d.cfg.Lease+continuesIn)\n", "\treturn nil\n",
		}},
		scenario: "series that outlasts its lease", caught: "it is sent at its first attempt",
	},
	{
		bug: "a start that was refused is made all the same",
		edits: []edit{{
			"internal/dispatch/attempt.go", "\t\treturn result{}, refused\n\t}\n\tfailpoint.Hit(failpoint.Started)", "\t}\n\tfailpoint.Hit(failpoint.Started)",
		}},
		scenario: "starts that come together", caught: "copies|copy|each is sent, once|nothing is in doubt|not within",
	},
	{
		bug: "the slot of a start is not waited for",
		edits: []edit{{
			"internal/dispatch/attempt.go", "\t\tworker.Sleep(p.call, d.untilStart(a, start.Start))\n", "",
		}},
		scenario: "starts that come together", caught: "too fast: the group",
	},
	{
		bug: "the client makes a POST again when its answer is lost",
		edits: []edit{
			{"internal/outbound/client.go", "\t\treq.GetBody = nil\n", "\t\t_ = req.GetBody\n"},
			{
				"internal/outbound/client.go", "\tresp, err := c.http.Do(req)\n",
				"\tresp, err := c.http.Do(req)\n\tif err != nil && req.GetBody != nil {\n\t\tagain := req.Clone(ctx)\n\t\tagain.Body, _ = req.GetBody()\n\t\tresp, err = c.http.Do(again)\n\t}\n",
			},
		},
		scenario: "answers that are lost", caught: "copies under hold|copy 2 began",
	},
	{
		bug: "a call whose bytes were written counts as not made",
		edits: []edit{{
			"internal/adapter/exchange.go", "case !ok || failure.Written:", "case !ok || !failure.Written:",
		}},
		scenario: "answers that are lost", caught: "copies under hold|copy 2 began",
	},
	{
		bug: "the pause that a platform asks for is dropped",
		edits: []edit{{
			"internal/adapter/telegram/answer.go", "\tif r.Parameters.RetryAfter > 0 {\n\t\tfailure.RetryAfterMS = r.Parameters.RetryAfter * 1000\n\t}\n",
			"\tfailure.RetryAfterMS = 0\n",
		}},
		scenario: "pause that is asked for", caught: "inside the platform's pause",
	},
	{
		bug: "the outcome of an act is not committed",
		edits: []edit{{
			"internal/dispatch/postchanges.go", "\tif !started {\n\t\treturn\n\t}\n", "\tif !started || failure == nil {\n\t\treturn\n\t}\n",
		}},
		scenario: "edits of sent posts", caught: "each post is edited, once|status = 'done'",
	},
	{
		bug: "an act that failed counts as done",
		edits: []edit{{
			"internal/dispatch/postchanges.go", "a.ClaimToken, failure, raw != nil)\n\t\treturn err", "a.ClaimToken, nil, raw != nil)\n\t\treturn err",
		}},
		scenario: "edits of sent posts", caught: "each post is edited, once",
	},
	{
		bug: "an act starts without a slot",
		edits: []edit{{
			"internal/dispatch/postchanges.go", "start, err := d.deps.Store.StartAct(ctx, change.Delivery.WorkspaceID, change.ActID, change.Delivery.ClaimToken)\n",
			"start, err := Start{Applied: true, Deadline: d.cfg.Lease}, error(nil)\n",
		}},
		scenario: "edits of sent posts", caught: "too fast: the acts",
	},
	{
		bug: "a reply of the bot is sent again without a question to the platform",
		edits: []edit{{
			"internal/bot/send.go", "ok && reply.UnknownOutcomes > 0 {", "ok && reply.UnknownOutcomes > 9 {",
		}},
		scenario: "dialog with the shop bot", caught: "each answer goes out once, in order",
	},
	{
		bug: "the outcome of a reply of the bot is not committed",
		edits: []edit{{
			"internal/bot/send.go", "\tend := time.Now().Add(w.cfg.AdapterTimeout)\n", "\tif outcome.OK && reply.Attempt == 1 {\n\t\treturn answer, worker.ErrRefused\n\t}\n\tend := time.Now().Add(w.cfg.AdapterTimeout)\n",
		}},
		scenario: "dialog with the shop bot", caught: "one outcome is in doubt|select count|each answer goes out once",
	},
	{
		bug: "a reply of the bot starts without its slot",
		edits: []edit{{
			"internal/bot/send.go", "\tif !worker.Sleep(ctx, min(start.SendIn, longestSlot)) {\n", "\tif false {\n",
		}},
		scenario: "dialog with the shop bot", caught: "no reply goes out before its slot",
	},
	{
		bug: "a press is not ended",
		edits: []edit{{
			"internal/bot/send.go", "\t\tw.answerPress(ctx, reply, secret)\n", "",
		}},
		scenario: "dialog with the shop bot", caught: "the press is ended",
	},
	{
		bug: "a message to people is finished and not sent",
		edits: []edit{{
			"internal/monitor/alerts.go", "\t\t\tfailure := m.deps.Notifier.Send(send, workspace, notice)\n", "\t\t\tvar failure *autopost.Error\n\t\t\t_ = send\n",
		}},
		scenario: "message to people", caught: "people have the message",
	},
	{
		bug: "a call to moderators is finished and not made",
		edits: []edit{{
			"internal/monitor/moderation.go", "\toutcome := m.deps.Moderator.Moderate(send, workspace, call)\n", "\toutcome := autopost.Sent(\"1\", time.Time{}, nil)\n\t_ = send\n",
		}},
		scenario: "question to moderators", caught: "they are asked",
	},
	{
		bug: "a decision shows in the first copy of a message only",
		edits: []edit{{
			"internal/notify/moderate.go", "\tfor _, id := range c.ProviderIDs {\n", "\tfor _, id := range c.ProviderIDs[:1] {\n",
		}},
		scenario: "question to moderators", caught: "no copy has buttons",
	},
	{
		bug: "a result is committed as delivered and not sent",
		edits: []edit{{
			"internal/webhooks/send.go", "\toutcome := s.call(ctx, call, keys)\n", "\toutcome := Outcome{HTTPStatus: 200}\n",
		}},
		scenario: "results that are reported", caught: "the receiver has all",
	},
	{
		bug: "the cursor of a source moves before its chunk is committed",
		edits: []edit{{
			"internal/ingest/pull/loop.go", "\tfailpoint.Within(failpoint.InsideChunk)\n",
			"\t_ = l.setCursor(ctx, source, chunk[len(chunk)-1].Cursor)\n\tfailpoint.Within(failpoint.InsideChunk)\n",
		}},
		scenario: "chunk that is cut off", caught: "every item comes in",
	},
	{
		bug: "a push is answered before it is committed",
		edits: []edit{{
			"internal/ingest/push/receiver.go", "\t\traw, err := store(ctx, join(sound))\n",
			"\t\tgo func() { _, _ = store(context.WithoutCancel(ctx), join(sound)) }()\n\t\tw.WriteHeader(http.StatusAccepted)\n\t\t_ = http.NewResponseController(w).Flush()\n\t\traw, err := json.RawMessage(`{\"results\":[{\"status\":\"accepted\"}]}`), error(nil)\n",
		}},
		scenario: "push that is cut off", caught: "not before: 202",
	},
	{
		bug: "a push that could not be taken is answered as taken",
		edits: []edit{{
			"internal/ingest/push/receiver.go", "\tseconds := problem.RetryAfter(w, retryWait)\n", "\tseconds := problem.RetryAfter(w, retryWait)\n\tw.WriteHeader(http.StatusAccepted)\n",
		}},
		scenario: "push that is cut off", caught: "what is not taken is to come again",
	},
	{
		bug: "a medium that breaks off is taken for whole",
		edits: []edit{{
			"internal/media/store.go", "\tif err != nil && !errors.Is(err, io.EOF) {\n\t\tt.err = err\n\t}\n\treturn n, err\n",
			"\tif err != nil && !errors.Is(err, io.EOF) {\n\t\terr = io.EOF\n\t}\n\treturn n, err\n",
		}},
		scenario: "medium that breaks off", caught: "what is registered is whole",
	},
	{
		bug: "a claim that is not answered is forgotten",
		edits: []edit{{
			"internal/dispatch/claim.go", "\t\t\td.lostClaims.miss(key.WorkspaceID)\n", "\t\t\t_ = key\n",
		}},
		scenario: "answer of a claim that is lost", caught: "what was lost is handed back",
	},
	{
		bug: "claims in flight are taken for lost",
		edits: []edit{{
			"internal/dispatch/lostclaims.go", "d.cfg.RunID, d.lostClaims.held.Known(workspace))", "d.cfg.RunID, nil)",
		}},
		scenario: "answer of a claim that is lost", caught: "claims in flight are not released",
	},
	{
		bug: "a stop gives up what has begun",
		edits: []edit{{
			"internal/dispatch/attempt.go", "\tres, end := d.attempt(p, a)\n", "\tres, end := d.attempt(p, a)\n\tif p.run.Err() != nil {\n\t\tend = abandoned\n\t}\n",
		}},
		scenario: "stop over calls", caught: "nothing stays claimed",
	},
	{
		bug: "a stop hands nothing back",
		edits: []edit{{
			"internal/dispatch/dispatcher.go", "\td.release(p.commit)\n", "",
		}},
		scenario: "stop over calls", caught: "nothing stays claimed",
	},
	{
		// Recovery without an earlier observation cannot be seen: the database refuses it.
		bug: "the database does not get the elapsed time",
		edits: []edit{{
			"internal/monitor/clock.go", "\t\telapsed = &since\n", "\t\t_ = since\n",
		}},
		scenario: "clock that jumps", caught: "nothing is in doubt|nothing goes out twice",
	},
	{
		bug: "a secret is printed", // one in an attribute of the log is redacted there
		edits: []edit{{
			"internal/dispatch/send.go", "\tcall := autopost.Call{\n", "\tprintln(secret.Reveal())\n\tcall := autopost.Call{\n",
		}},
		scenario: "commits that come together", caught: "a secret is in the output of the daemon",
	},
	{
		bug: "a share key may hold all capacity",
		edits: []edit{{
			"internal/worker/fairshare.go", "\tfree, weight := f.capacity-f.taken, f.weight(key)\n\treturn max(0, min(free, (weight*free-f.held[key]+weight)/(weight+1)))\n",
			"\treturn max(0, f.capacity-f.taken)\n",
		}},
		scenario: "neighbour of a dead platform", caught: "the neighbour is served",
	},
}
