package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Traces makes spans of the events of a Recorder, after they have happened: only then is the trace_id known that the
// database gave the post, which is the id of the trace. A nil Traces makes none.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// OpenTraces sends spans to the collector at endpoint, an OTLP base URL such as http://127.0.0.1:4318. It does not
// connect before the first span. log receives failures of the whole process.
func OpenTraces(ctx context.Context, endpoint string, log *slog.Logger) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimRight(endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, errors.New("open traces: OTEL_EXPORTER_OTLP_ENDPOINT must be the base URL of a collector")
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces.not_sent", "error", err) }))
	return newTraces(sdktrace.WithBatcher(exporter)), nil
}

func newTraces(processor sdktrace.TracerProviderOption) *Traces {
	provider := sdktrace.NewTracerProvider(processor, sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "autopost"))))
	return &Traces{provider: provider, tracer: provider.Tracer("autopost")}
}

// Close sends the remaining spans until ctx ends.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

type (
	traceKey struct{}
	beganKey struct{}
)

func withBegan(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, beganKey{}, at)
}

// Began is the arrival of the request of ctx; now if that is unknown.
func Began(ctx context.Context) time.Time {
	if at, ok := ctx.Value(beganKey{}).(time.Time); ok {
		return at
	}
	return time.Now()
}

// ids makes the trace_id of a post the id of its trace, and its second half the id of the first span. So every daemon
// knows the parent of its spans.
type ids struct{}

// NewIDs implements trace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceKey{}).(trace.TraceID)
	return id, firstSpan(id)
}

// NewSpanID implements trace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func firstSpan(id trace.TraceID) trace.SpanID { return trace.SpanID(id[8:]) }

func traceOf(id string) (trace.TraceID, bool) {
	var t trace.TraceID
	n, err := hex.Decode(t[:], []byte(strings.ReplaceAll(id, "-", "")))
	return t, err == nil && n == len(t) && t.IsValid()
}

// pushed makes the first span of each post, and a child span for the enqueue.
func (t *Traces) pushed(ctx context.Context, p Push) {
	if t == nil {
		return
	}
	for _, post := range p.Posts {
		id, ok := traceOf(post.TraceID)
		if !ok || post.Status != "enqueued" && post.Status != "accepted" {
			continue
		}
		in, span := t.tracer.Start(context.WithValue(context.WithoutCancel(ctx), traceKey{}, id), "receive", trace.WithNewRoot(), trace.WithTimestamp(p.Began),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("workspace_id", p.WorkspaceID), attribute.String("endpoint_id", p.EndpointID), attribute.Int("posts", len(p.Posts))))
		t.span(in, "enqueue", p.Asked, p.Answered, database("receive_push"), attribute.Int("enqueued", post.Enqueued))
		span.End(trace.WithTimestamp(p.Answered))
	}
}

// attempted makes a span of an attempt, from its claim to its commit, with a child span for each part.
func (t *Traces) attempted(a *Attempt) {
	if t == nil {
		return
	}
	id, ok := traceOf(a.TraceID)
	if !ok {
		return
	}
	parent := trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: firstSpan(id), TraceFlags: trace.FlagsSampled, Remote: true,
	}))
	ctx, span := t.tracer.Start(parent, "attempt", trace.WithTimestamp(a.Claimed), trace.WithAttributes(
		attribute.String("workspace_id", a.WorkspaceID), attribute.String("delivery_id", a.DeliveryID), attribute.String("channel_id", a.ChannelID),
		attribute.String("platform", string(a.Platform)), attribute.Int("attempt", a.Attempt), attribute.String("outcome", a.outcome())))
	t.span(ctx, "claim", a.Claimed.Add(-a.Waited()), a.Claimed, database("claim_deliveries"), attribute.Int("batch", a.ClaimSize))
	t.span(ctx, "start", a.Asked, a.Began, database("start_call"), attribute.Int64("slot_late_ms", a.Late.Milliseconds()))
	t.span(ctx, "call", a.Began, a.Answered, attribute.String("platform", string(a.Platform)))
	answered := a.Answered
	if answered.IsZero() {
		answered = a.Claimed
	}
	t.span(ctx, "commit", answered, a.Committed, database("commit_outcome"))
	if e := a.Outcome.Error; e != nil {
		span.SetStatus(codes.Error, e.Code)
	}
	span.End()
}

// span makes a span unless one of the times is zero.
func (t *Traces) span(ctx context.Context, name string, began, ended time.Time, attributes ...attribute.KeyValue) {
	if began.IsZero() || ended.IsZero() {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(began), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(ended))
}

func database(function string) attribute.KeyValue {
	return attribute.String("db.stored_procedure.name", "autopost."+function)
}
