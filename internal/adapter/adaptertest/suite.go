package adaptertest

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
)

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	cases := map[string]func(*testing.T, Harness){
		"MissingOriginIsPermanent":          testMissingOrigin,
		"MissingSecretIsPermanent":          testMissingSecret,
		"ErrorTable":                        testRows,
		"NothingWrittenIsKnown":             testNothingWritten,
		"UntrustedCertificateIsPermanent":   testUntrusted,
		"LostAnswerIsNotARefusal":           testLostAnswer,
		"OwnServerErrorIsKnown":             testDefinite5xx,
		"WaitOfTheHeaderIsAMinimum":         testRetryAfter,
		"CancelledWhileWaiting":             testCancelWaiting,
		"CancelledBeforeTheCallIsKnown":     testCancelBefore,
		"SecretIsNeverRevealed":             testSecrets,
		"GarbageIsNotAnAcknowledgement":     testGarbage,
		"NeverFollowsARedirect":             testRedirect,
		"RejectsAStepWithoutItsMedium":      testBadStep,
		"WrongTargetConcernsTheChannel":     testBadTarget,
		"ContentIsAlwaysClosed":             testContentClosed,
		"ServesManyDeliveriesAtTheSameTime": testConcurrent,
	}
	if !h.AnyBody {
		cases["PageOfAProxyIsTransient"] = testGateway
	}
	if h.Lookup {
		cases["LostAnswerIsReconciled"] = testLookup
	}
	if h.Longest != "" {
		cases["LongestTextInThePlatformsUnit"] = testLongest
	}
	if !h.NoUploads {
		cases["TimeoutBeforeTheLastByteIsNotARefusal"] = testStalled
	}
	if h.Plain == nil {
		maps.Copy(cases, messages)
		if !h.NoSettings {
			cases["WrongSettingsConcernTheChannel"] = testBadSettings
		}
		if !h.NoUploads {
			maps.Copy(cases, uploads)
		}
	}
	if len(h.Changes) > 0 {
		maps.Copy(cases, changeCases)
		if h.Plain == nil {
			cases["EachPartOfAThreadIsChanged"] = testThreadChanges
		}
	}
	if h.uploader(t) {
		maps.Copy(cases, handovers)
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

// messages are the cases of platforms with text messages.
var messages = map[string]func(*testing.T, Harness){
	"Text":                         testText,
	"EveryKindOfMedium":            testKinds,
	"AlbumWithCaptions":            testAlbum,
	"SplitTextIsSentInParts":       testSplit,
	"ReplyAnswersItsStep":          testReply,
	"SeriesSkipsAcknowledgedSteps": testPartialSeries,
	"ThreadRepliesInItsOrder":      testThread,
	"ButtonsAndQuietSettingsApply": testOptions,
	"PlainTextIsSentUnchanged":     testPlain,
}

// uploads are the cases of platforms with ids for uploaded media.
var uploads = map[string]func(*testing.T, Harness){
	"ReusesUploads":                  testReuse,
	"FilesKeepTheirNames":            testNames,
	"UploadsAgainWhenAnIDIsRejected": testExpired,
	"UploadsAgainOnlyOnce":           testExpiredTwice,
}

// handovers are the cases of platforms that accept a medium without a post.
var handovers = map[string]func(*testing.T, Harness){
	"UploadsAMediumWithoutAPost":    testUpload,
	"UploadErrorTable":              testUploadFailures,
	"FailureOfAnUploadIsDefinite":   testUploadLost,
	"AnUploadNeedsSecretAndContent": testUploadMissing,
}

// uploader reports whether the adapter under test is an autopost.Uploader.
func (h Harness) uploader(t *testing.T) bool {
	t.Helper()
	a, err := h.New("http://127.0.0.1", nil)
	require.NoError(t, err)
	_, is := a.(autopost.Uploader)
	return is
}

var textStep = autopost.Step{Name: "text", Text: true}

func mediaStep(name string, items ...int) autopost.Step {
	return autopost.Step{Name: name, Items: items}
}

// requireOnePost requires exactly one accepted call that makes messages, with the ids of the outcome.
func requireOnePost(t *testing.T, b *bench, o autopost.Outcome, method string) {
	t.Helper()
	require.True(t, o.OK, "%v", o.Error)
	require.Len(t, b.posts(), 1)
	accepted := b.accepted()
	require.Len(t, accepted, 1)
	require.Equal(t, method, accepted[0].Method)
	require.Equal(t, accepted[0].MessageIDs[0], o.ProviderMessageID)
	require.Empty(t, accepted[0].Notes)
}
