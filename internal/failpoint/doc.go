// Package failpoint names the points at which a process may die with something half
// done. A point is named where it lies in the code:
//
//	failpoint.Hit(failpoint.ReplyRead)
//
// In an ordinary build that does nothing: it compares a pointer with nil. A program that was built
// with the tag "failpoint" kills itself there, as a power cut would, when AUTOPOST_FAILPOINT
// names the point: "P13:4" dies the fourth time it comes to P13. A point that lies within a
// call of the database is one of time: "P14:4:2ms" dies two milliseconds after the
// fourth such call began; "P10:1:panic" panics. test/crash starts such programs, starts others after them,
// and compares what the receivers got with the rows of the database.
package failpoint

// Point is a place at which a process may die.
type Point string

// The points. What stands behind each is what has happened when a process dies there.
const (
	// BeforeReceipt: a push has arrived whole, and nothing of it is stored.
	BeforeReceipt Point = "P1"
	// InsideReceipt: the transaction of receipt and enqueue is running.
	InsideReceipt Point = "P2"
	// ReceiptCommitted: a push is stored, and its source has no answer yet.
	ReceiptCommitted Point = "P3"
	// MediaStored: the media of a submission are in the origin, and it is not enqueued.
	MediaStored Point = "P4"
	// SourceFetched: a source was read, and nothing of it is stored.
	SourceFetched Point = "P5"
	// InsideChunk: the transaction of a chunk of a source is running.
	InsideChunk Point = "P6"
	// ChunkCommitted: a chunk is stored, and the cursor stands before it.
	ChunkCommitted Point = "P7"
	// InsideClaim: a claim is running; it may commit, and its answer is lost.
	InsideClaim Point = "P8"
	// Claimed: deliveries are claimed, and no call has begun.
	Claimed Point = "P9"
	// Started: the start of a call is recorded, and no byte of it has left.
	Started Point = "P10"
	// HalfSent: half the content of a medium has left.
	HalfSent Point = "P11"
	// Accepted: the platform has answered, and the answer is not read.
	Accepted Point = "P12"
	// ReplyRead: the answer is read, and nothing of it is recorded.
	ReplyRead Point = "P13"
	// InsideCommit: the commit of an outcome is running; it may commit, and its answer is lost.
	InsideCommit Point = "P14"
	// Committed: an outcome is recorded.
	Committed Point = "P15"
	// BetweenSteps: a step is recorded, and the next has not begun.
	BetweenSteps Point = "P16"
	// StepAcknowledged: the platform has acknowledged a step, and it is not recorded.
	StepAcknowledged Point = "P17"
	// Uploaded: the platform has given its id of a medium, and it is not kept.
	Uploaded Point = "P18"
	// InsideRecovery: the recovery of expired leases is running.
	InsideRecovery Point = "P19"
	// FileWritten: a file of a folder is written under its temporary name, and not renamed.
	FileWritten Point = "P20"
	// FileStarted: an approved file job is in the queue, and no call has begun.
	FileStarted Point = "P21"
	// FileResult: a file job is published, and its state file is not written.
	FileResult Point = "P22"
	// UpdateCommitted: an update of a bot is stored, and its platform has no answer yet.
	UpdateCommitted Point = "P23"
	// ReplyClaimed: a message of the bot is claimed, and its call has not begun.
	ReplyClaimed Point = "P24"
	// ReplyAccepted: the platform has answered the call of a message of the bot, and nothing of it is recorded.
	ReplyAccepted Point = "P25"
	// ReplyCommit: the commit of a message of the bot is running; it may commit, and its answer is lost.
	ReplyCommit Point = "P26"
	// ActCommitted: a manual action of the API is stored, and the person has no answer yet.
	ActCommitted Point = "P27"
	// BetweenMigrations: the tables are of this program, its functions are not.
	BetweenMigrations Point = "P28"
	// ClaimStarted: deliveries are claimed, some of their calls are recorded as started, and no byte of them has left.
	ClaimStarted Point = "P29"
)

// Points are all of them.
var Points = []Point{
	BeforeReceipt, InsideReceipt, ReceiptCommitted, MediaStored, SourceFetched, InsideChunk, ChunkCommitted,
	InsideClaim, Claimed, Started, HalfSent, Accepted, ReplyRead, InsideCommit, Committed,
	BetweenSteps, StepAcknowledged, Uploaded, InsideRecovery, FileWritten, FileStarted, FileResult, UpdateCommitted, ReplyClaimed, ReplyAccepted, ReplyCommit, ActCommitted, BetweenMigrations, ClaimStarted,
}
