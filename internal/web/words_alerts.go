package web

// alertText is an alert in a language other than English, which the database writes.
type alertText struct {
	// said is the sentence. %d stands for the amount, with plural forms as in other texts, {name} for the part of the
	// subject after the colon.
	said string
	// minutes means that the amount is a time in seconds, and is said in minutes.
	minutes bool
	// whole means that the sentence has all that the English one says. Otherwise that is shown below it.
	whole bool
	// remedy says how to end the alert. Its placeholders are those of the SQL function alert_kinds.
	remedy string
}

// alertTexts are the texts of alerts by language and kind. Each kind of the SQL function alert_kinds has one.
var alertTexts = map[string]map[string]alertText{"ru": {
	"dead": {said: "%d доставка кончилась без отправки|%d доставки кончились без отправки|%d доставок кончились без отправки",
		remedy: "причины: autopost deliveries list --status dead --workspace {workspace}; когда причина устранена: autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed; " +
			"или оставьте их: autopost alert ack {alert} --workspace {workspace} --reason seen"},
	"dead_many": {said: "Очень много неотправленного: %d доставка|Очень много неотправленного: %d доставки|Очень много неотправленного: %d доставок",
		remedy: "остановите то, что наполняет очередь, и найдите причину: autopost deliveries list --status dead --workspace {workspace}; " +
			"затем: autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed"},
	"failed_permanent": {said: "За 10 минут окончательно не удалась %d доставка|За 10 минут окончательно не удались %d доставки|За 10 минут окончательно не удалось %d доставок",
		remedy: "причины: autopost deliveries list --status failed_permanent --workspace {workspace}; " +
			"когда причина устранена: autopost deliveries requeue --code CODE --workspace {workspace} --reason fixed"},
	"paused_channels": {said: "%d канал стоит на паузе или отключён после ошибок|%d канала стоят на паузе или отключены после ошибок|%d каналов стоят на паузе или отключены после ошибок", whole: true,
		remedy: "какие и почему: autopost channel list --workspace {workspace}; когда причина устранена: autopost channel resume ID --workspace {workspace} --reason fixed"},
	"channel_refused": {said: "Платформа не принимает посты в канал {name}",
		remedy: "исправьте то, о чём сообщает платформа (состоит ли бот в чате, может ли он писать?): autopost channel check {name} --workspace {workspace}; " +
			"затем: autopost channel resume {name} --workspace {workspace} --reason fixed; неудавшиеся доставки: " +
			"autopost deliveries requeue --channel {name} --code {code} --workspace {workspace} --reason fixed"},
	"oldest_due": {said: "Посты опаздывают: срок самого старого прошёл %d минуту назад|Посты опаздывают: срок самого старого прошёл %d минуты назад|Посты опаздывают: срок самого старого прошёл %d минут назад", minutes: true,
		remedy: "все ли демоны работают? autopost doctor; что идёт медленно и надолго ли: autopost forecast --workspace {workspace}; " +
			"поднимите лимит: autopost channel set ID --rate-rps RPS --workspace {workspace} --reason slow (или autopost group set) или запустите ещё один autopost serve"},
	"outcome_held": {said: "%d пост ждёт человека: неизвестно, опубликован ли он|%d поста ждут человека: неизвестно, опубликованы ли они|%d постов ждут человека: неизвестно, опубликованы ли они",
		remedy: "откройте канал. Пост там есть: autopost deliveries resolve ID --found MESSAGE_ID --workspace {workspace} --reason seen; " +
			"поста нет: autopost deliveries resolve ID --absent --workspace {workspace} --reason missing"},
	"unknown_outcome": {said: "Исход %d доставки неизвестен|Исход %d доставок неизвестен|Исход %d доставок неизвестен", whole: true,
		remedy: "откройте канал; список постов: autopost deliveries list --status failed_permanent --workspace {workspace}. " +
			"Поста нет: autopost deliveries requeue ID --workspace {workspace} --reason missing; все на месте: autopost alert ack {alert} --workspace {workspace} --reason seen"},
	"auth_lost": {said: "Платформа не принимает учётные данные «{name}»: их каналы стоят на паузе",
		remedy: "получите у платформы новые, затем: autopost credential set {name} --from-file FILE --workspace {workspace} --reason renewed " +
			"(X и YouTube: autopost credential link {name}); каналы продолжат работу. Неудавшиеся доставки: autopost credential requeue --credential {name} --workspace {workspace} --reason renewed"},
	"credential_missing": {said: "У учётных данных «{name}» нет секрета: посты ждут в %d канале|У учётных данных «{name}» нет секрета: посты ждут в %d каналах|У учётных данных «{name}» нет секрета: посты ждут в %d каналах",
		remedy: "получите секрет у платформы, затем: autopost credential set {name} --from-file FILE --workspace {workspace} --reason new " +
			"(для новых: с --platform PLATFORM; X и YouTube: autopost credential link {name}); каналы продолжат работу автоматически"},
	"auth_expiring": {said: "Учётные данные «{name}» скоро перестанут действовать, и их каналы остановятся",
		remedy: "получите у платформы новые, затем: autopost credential set {name} --from-file FILE --workspace {workspace} --reason renewed (X и YouTube: autopost credential link {name})"},
	"auth_not_renewed": {said: "Учётные данные «{name}» не обновляются: %d неудача подряд|Учётные данные «{name}» не обновляются: %d неудачи подряд|Учётные данные «{name}» не обновляются: %d неудач подряд",
		remedy: "ошибка: autopost credential show {name} --workspace {workspace}; если она повторяется: autopost credential link {name} --same-app --workspace {workspace} --reason renewed"},
	"moderation_backlog": {said: "%d пост ждёт решения|%d поста ждут решения|%d постов ждут решения", whole: true,
		remedy: "решите о них в очереди модерации рабочей области {workspace}"},
	"moderation_chat_failing": {said: "Модераторы не получают вопросов в чате {name}",
		remedy: "ошибка: autopost moderation chat list --workspace {workspace}; состоит ли бот в чате, может ли он писать? Пока решайте так: autopost moderation list --workspace {workspace}"},
	"publish_job_failed": {said: "Файловое задание {name} не удалось",
		remedy: "причина: autopost filebus explain {name} --workspace {workspace}; когда она устранена: autopost filebus approve {name} --platform PLATFORM --workspace {workspace} --reason fixed"},
	"publish_job_unknown": {said: "Неизвестно, опубликовано ли файловое задание {name}",
		remedy: "посмотрите в канале: autopost filebus explain {name} --workspace {workspace} скажет, о какой доставке решить или какой файл состояния исправить или убрать"},
	"submission_failed": {said: "%d пост не дошёл до очереди|%d поста не дошли до очереди|%d постов не дошли до очереди",
		remedy: "причины: autopost submissions list --status failed --workspace {workspace}; когда причина устранена: autopost submissions retry ID --workspace {workspace} --reason fixed; " +
			"или оставьте их: autopost alert ack {alert} --workspace {workspace} --reason seen"},
	"source_failing": {said: "Источник {name} не читается: %d неудача подряд|Источник {name} не читается: %d неудачи подряд|Источник {name} не читается: %d неудач подряд",
		remedy: "проверьте его ответ: autopost source test {name} --workspace {workspace}; исправьте адрес: autopost source set {name} --url URL --workspace {workspace} --reason corrected; " +
			"прочитайте сейчас: autopost source fetch {name} --workspace {workspace} --reason fixed"},
	"source_stopped": {said: "Источник {name} остановлен, из него ничего не приходит",
		remedy: "исправьте адрес: autopost source set {name} --url URL --workspace {workspace} --reason corrected; затем: autopost source enable {name} --workspace {workspace} --reason fixed; " +
			"или отключите его: autopost source disable {name} --workspace {workspace} --reason gone"},
	"breaker_open": {said: "Платформа группы {name} не отвечает %d минуту: предохранитель открыт, посты ждут|Платформа группы {name} не отвечает %d минуты: предохранитель открыт, посты ждут|Платформа группы {name} не отвечает %d минут: предохранитель открыт, посты ждут", minutes: true, whole: true,
		remedy: "подождите, если платформа недоступна (см. её страницу состояния): её проверяют автоматически: autopost group list --workspace {workspace}. " +
			"Если она работает: видит ли её эта машина? autopost doctor"},
	"orphans": {said: "%d строка ({name}) ссылается на то, чего нет|%d строки ({name}) ссылаются на то, чего нет|%d строк ({name}) ссылаются на то, чего нет",
		remedy: "выполните: autopost verify --workspace {workspace}; сохраните вывод и сравните с последней копией"},
	"audit_chain": {said: "Журнал действий изменён, или в нём нет части строк",
		remedy: "выполните: autopost audit verify --workspace {workspace}; сравните с концами журнала из лога демона (monitor.audit_head)"},
	"platform_wait": {said: "Платформа долго не принимает посты ({name})",
		remedy: "прочитайте ответ платформы: исчерпанная квота восстановится автоматически, кредит и предел расходов поднимают на платформе; " +
			"конец ожидания: autopost group list --workspace {workspace}, autopost channel list --workspace {workspace}"},
	"alert_target_failing": {said: "Тревоги не доходят до получателя {name}",
		remedy: "ошибка: autopost alert target list --workspace {workspace}; исправьте её, затем: autopost alert target test {name} --workspace {workspace} --reason fixed"},
	"alerts_undelivered": {said: "Тревоги рабочей области {name} не доходят ни до кого",
		remedy: "ошибка: autopost alert target list --workspace {name}; исправьте её или добавьте получателя с другими учётными данными: autopost alert target add"},
	"rights_lost": {said: "Бот больше не может писать в канал {name}: посты ждут",
		remedy: "верните боту права в чате: канал продолжит работу автоматически; или отключите его: autopost channel disable {name} --workspace {workspace} --reason gone"},
	"subscription": {said: "Платформа не присылает обновления бота для входа {name}",
		remedy: "прочитайте ошибку; сравните AUTOPOST_PUBLIC_URL с адресом, который доступен платформе"},
	"webhook_failing": {said: "Вебхук {name} не принимает запросы %d минуту: события ждут|Вебхук {name} не принимает запросы %d минуты: события ждут|Вебхук {name} не принимает запросы %d минут: события ждут", minutes: true,
		remedy: "исправьте получателя, затем: autopost webhook test {name} --workspace {workspace} --reason fixed; ждущие запросы уйдут автоматически"},
	"webhook_disabled": {said: "Вебхук {name} отключён",
		remedy: "исправьте получателя; затем: autopost webhook enable {name} --workspace {workspace} --reason fixed; " +
			"пропущенные события: autopost webhook replay {name} --since TIME --workspace {workspace} --reason fixed"},
	"bot_given_up": {said: "Бот отказался обрабатывать %d сообщение после пяти попыток|Бот отказался обрабатывать %d сообщения после пяти попыток|Бот отказался обрабатывать %d сообщений после пяти попыток",
		remedy: "какие чаты: autopost bot chats --workspace {workspace}; исправьте правило или шаблон, который назван в ошибке, и ответьте этим клиентам сами; " +
			"затем: autopost alert ack {alert} --workspace {workspace} --reason answered"},
	"bot_errors": {said: "За 10 минут бот не смог обработать %d сообщение|За 10 минут бот не смог обработать %d сообщения|За 10 минут бот не смог обработать %d сообщений",
		remedy: "прочитайте ошибку; проверьте правила: autopost bot lint --workspace {workspace}; вернитесь к прежней версии: " +
			"autopost bot rules enable RULE --version N --workspace {workspace} --reason wrong; у сообщений пять попыток"},
	"bot_replies_failing": {said: "За 10 минут не отправлен %d ответ бота {name}|За 10 минут не отправлены %d ответа бота {name}|За 10 минут не отправлено %d ответов бота {name}",
		remedy: "прочитайте ошибку; действуют ли учётные данные? autopost credential list --workspace {workspace}; отвечает ли платформа? " +
			"autopost group list --workspace {workspace}; ответы отправляются снова автоматически"},
	"bot_fallback_rate": {said: "За час %d %% сообщений боту остались без правила|За час %d %% сообщений боту остались без правила|За час %d %% сообщений боту остались без правила",
		remedy: "вопросы: autopost bot report --workspace {workspace}; добавьте ключевые слова или правило: autopost bot rules set RULE --keywords WORDS --workspace {workspace} --reason unmatched"},
	"bot_unmatched": {said: "На сообщения с одними и теми же словами %d раз за сутки не нашлось правила|На сообщения с одними и теми же словами %d раза за сутки не нашлось правила|На сообщения с одними и теми же словами %d раз за сутки не нашлось правила", whole: true,
		remedy: "вопрос: autopost bot report --since 1d --workspace {workspace}; добавьте правило: " +
			"autopost bot rules set RULE --keywords WORDS --response-template TEXT --workspace {workspace} --reason unmatched; или оставьте так: autopost alert ack {alert} --workspace {workspace} --reason seen"},
	"no_dispatcher": {said: "Ни один демон не отправляет посты уже %d минуту|Ни один демон не отправляет посты уже %d минуты|Ни один демон не отправляет посты уже %d минут", minutes: true,
		remedy: "запустите демон: autopost serve; если он останавливается, прочитайте его лог"},
	"daemon_lost": {said: "Демон остановился, другие работают",
		remedy: "запустите его снова на его машине: autopost serve; причина есть в его логе. Если он больше не нужен: autopost alert ack {alert} --workspace {workspace} --reason gone"},
	"duty_failing": {said: "Монитор не выполняет «{name}»: %d неудача подряд|Монитор не выполняет «{name}»: %d неудачи подряд|Монитор не выполняет «{name}»: %d неудач подряд",
		remedy: "прочитайте ошибку здесь и в логе демона (monitor.failed); выполните: autopost doctor"},
	"stage_panicked": {said: "Стадия «{name}» демона аварийно завершилась %d раз и запущена снова|Стадия «{name}» демона аварийно завершилась %d раза и запущена снова|Стадия «{name}» демона аварийно завершилась %d раз и запущена снова",
		remedy: "стек есть в логе демона (stage.panicked); сообщите его вместе с версией: autopost --version; потерянная работа повторится после срока её захвата"},
	"disk_low": {said: "Диск полон или почти полон",
		remedy: "освободите место или возьмите диск больше: docs/operate/disks.md"},
	"clock_skew": {said: "Часы демона и базы расходятся на %d мс|Часы демона и базы расходятся на %d мс|Часы демона и базы расходятся на %d мс",
		remedy: "включите на обеих машинах синхронизацию времени (NTP), например: timedatectl set-ntp true; затем: autopost doctor"},
	"clock_jumped": {said: "Часы базы скачком изменились на %d мс|Часы базы скачком изменились на %d мс|Часы базы скачком изменились на %d мс",
		remedy: "синхронизируйте часы машины базы по NTP, например: timedatectl set-ntp true; ожидания сохраняют длину, даты людей остаются"},
	"partitions_missing": {said: "Для %d из ближайших дней нет раздела событий|Для %d из ближайших дней нет раздела событий|Для %d из ближайших дней нет раздела событий", whole: true,
		remedy: "выполните: autopost doctor; монитор добавляет разделы, если ему можно создавать таблицы"},
	"events_without_partition": {said: "Часть событий лежит в разделе по умолчанию", whole: true,
		remedy: "монитор опоздал; события удалит срок хранения; см. autopost doctor"},
	"config_differs": {said: "Демоны настроены по-разному",
		remedy: "задайте всем демонам одинаковое окружение (docs/reference/config.md) и перезапустите их"},
}}
