create or replace function autopost.bot_receive(p_workspace_id text, p_endpoint_id text, p_update jsonb) returns jsonb
language plpgsql security definer set search_path = autopost, pg_temp
as $$
-- Purpose: takes one update of a bot's platform for the shop bot, in one transaction: the inbox row, the
--          state of the chat under its lock, the matching rule, the log, and the reply in the outbox.
--          receive_update calls it; callers that store updates themselves may call it directly. The
--          bot answers in dialogs only, never bots, if the workspace has an enabled rule and meta.bot.enabled
--          of the endpoint is not false. A reply in operator_chat_id to a relayed message goes to its
--          customer. An edit is logged, not answered. A repeat of a message changes nothing; it
--          resumes a message that was stored but not processed. If processing fails, the message stays
--          received with the error, and bot_recover tries it again. A chat gets at most 20 answers a
--          minute; messages above that wait, received, in their order.
-- Returns: {"status": processed | received | duplicate | logged | relayed | handed_back | ignored,
--          "reason" if ignored: no_message, disabled, no_dialog, no_rules, operator_chat, handed_back}.
-- Raises:  AP001 for a wrong argument; AP002, AP003, AP005 as enter_workspace.
-- Locks:   bot_state, bot_inbox, in this order.
-- Reads:   workspace_endpoints, credential_bindings, bot_rules, platforms.
-- Writes:  bot_state, bot_inbox, bot_outbox, bot_logs, events (bot_fallback, bot_escalated).
declare
	v_bot record;
begin
	perform autopost.enter_workspace(p_workspace_id);
	v_bot := autopost.bot_of(p_workspace_id, p_endpoint_id);
	perform autopost.require_argument('update', jsonb_typeof(p_update) = 'object');
	return autopost.bot_take(p_workspace_id, v_bot.o_platform, v_bot.o_auth_ref, p_update);
end
$$;
