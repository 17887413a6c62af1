package adaptertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
)

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"Text":                              testText,
		"EveryKindOfMedium":                 testKinds,
		"AlbumWithCaptions":                 testAlbum,
		"SplitTextGoesInItsParts":           testSplit,
		"ReplyAnswersItsStep":               testReply,
		"SeriesSkipsWhatIsAcknowledged":     testPartialSeries,
		"ReusesWhatWasUploaded":             testReuse,
		"UploadsAgainWhenAnIDIsRefused":     testExpired,
		"UploadsAgainOnlyOnce":              testExpiredTwice,
		"MissingOriginIsPermanent":          testMissingOrigin,
		"MissingSecretIsPermanent":          testMissingSecret,
		"ErrorTable":                        testRows,
		"NothingWrittenIsKnown":             testNothingWritten,
		"UntrustedCertificateIsPermanent":   testUntrusted,
		"LostAnswerIsUnknown":               testLostAnswer,
		"OwnServerErrorIsKnown":             testDefinite5xx,
		"CancelledWhileWaitingIsUnknown":    testCancelWaiting,
		"CancelledBeforeTheCallIsKnown":     testCancelBefore,
		"NoAnswerGivesTheSecretAway":        testCanary,
		"NeverFollowsARedirect":             testRedirect,
		"RefusesAStepThatNamesNoMedium":     testBadStep,
		"WrongSettingsConcernTheChannel":    testBadSettings,
		"WrongTargetConcernsTheChannel":     testBadTarget,
		"ContentIsClosedWhateverHappens":    testContentClosed,
		"ButtonsAndQuietSettingsAreTaken":   testOptions,
		"PlainTextIsSentAsItIs":             testPlain,
		"ServesManyDeliveriesAtTheSameTime": testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
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
