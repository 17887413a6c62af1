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
		"LostAnswerIsNeverTakenForARefusal": testLostAnswer,
		"OwnServerErrorIsKnown":             testDefinite5xx,
		"WaitOfTheHeaderIsAFloor":           testRetryAfter,
		"CancelledWhileWaiting":             testCancelWaiting,
		"CancelledBeforeTheCallIsKnown":     testCancelBefore,
		"NothingTellsTheSecret":             testSecrets,
		"GarbageIsNoAcknowledgement":        testGarbage,
		"NeverFollowsARedirect":             testRedirect,
		"RefusesAStepThatNamesNoMedium":     testBadStep,
		"WrongTargetConcernsTheChannel":     testBadTarget,
		"ContentIsClosedWhateverHappens":    testContentClosed,
		"ServesManyDeliveriesAtTheSameTime": testConcurrent,
	}
	if h.Lookup {
		cases["LostAnswerIsLookedUp"] = testLookup
	}
	if h.Longest != "" {
		cases["LongestTextInThePlatformsUnit"] = testLongest
	}
	if !h.NoUploads {
		cases["TimeoutBeforeTheLastByteIsNoRefusal"] = testStalled
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
	if len(h.Acts) > 0 {
		maps.Copy(cases, actCases)
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
}

// messages are the cases of platforms that take texts.
var messages = map[string]func(*testing.T, Harness){
	"Text":                            testText,
	"EveryKindOfMedium":               testKinds,
	"AlbumWithCaptions":               testAlbum,
	"SplitTextGoesInItsParts":         testSplit,
	"ReplyAnswersItsStep":             testReply,
	"SeriesSkipsWhatIsAcknowledged":   testPartialSeries,
	"ButtonsAndQuietSettingsAreTaken": testOptions,
	"PlainTextIsSentAsItIs":           testPlain,
}

// uploads are the cases of platforms that name an uploaded medium by an id.
var uploads = map[string]func(*testing.T, Harness){
	"ReusesWhatWasUploaded":         testReuse,
	"UploadsAgainWhenAnIDIsRefused": testExpired,
	"UploadsAgainOnlyOnce":          testExpiredTwice,
}

var textStep = autopost.Step{Name: "text", Text: true}

func mediaStep(name string, items ...int) autopost.Step {
	return autopost.Step{Name: name, Items: items}
}

// requireOnePost checks that exactly one call that makes messages was accepted and that its ids came back.
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
