create or replace function autopost.link_endings(p_ascii boolean) returns text[]
language sql immutable parallel safe
as $$
-- Purpose: the endings of hosts that X makes links of: those in ASCII, or all others.
select string_to_array(case when p_ascii
	then 'aaa aarp abarth abb abbott abbvie abc able abogado abudhabi ac academy accenture accountant accountants aco '
	|| 'active actor ad adac ads adult ae aeg aero aetna af afamilycompany afl africa ag agakhan agency ai aig aigo '
	|| 'airbus airforce airtel akdn al alfaromeo alibaba alipay allfinanz allstate ally alsace alstom am '
	|| 'americanexpress americanfamily amex amfam amica amsterdam an analytics android anquan anz ao aol apartments app '
	|| 'apple aq aquarelle ar arab aramco archi army arpa art arte as asda asia associates at athleta attorney au '
	|| 'auction audi audible audio auspost author auto autos avianca aw aws ax axa az azure ba baby baidu banamex '
	|| 'bananarepublic band bank bar barcelona barclaycard barclays barefoot bargains baseball basketball bauhaus '
	|| 'bayern bb bbc bbt bbva bcg bcn bd be beats beauty beer bentley berlin best bestbuy bet bf bg bh bharti bi bible '
	|| 'bid bike bing bingo bio biz bj bl black blackfriday blanco blockbuster blog bloomberg blue bm bms bmw bn bnl '
	|| 'bnpparibas bo boats boehringer bofa bom bond boo book booking boots bosch bostik boston bot boutique box bq br '
	|| 'bradesco bridgestone broadway broker brother brussels bs bt budapest bugatti build builders business buy buzz '
	|| 'bv bw by bz bzh ca cab cafe cal call calvinklein cam camera camp cancerresearch canon capetown capital '
	|| 'capitalone car caravan cards care career careers cars cartier casa case caseih cash casino cat catering '
	|| 'catholic cba cbn cbre cbs cc cd ceb center ceo cern cf cfa cfd cg ch chanel channel charity chase chat cheap '
	|| 'chintai chloe christmas chrome chrysler church ci cipriani circle cisco citadel citi citic city cityeats ck cl '
	|| 'claims cleaning click clinic clinique clothing cloud club clubmed cm cn co coach codes coffee college cologne '
	|| 'com comcast commbank community company compare computer comsec condos construction consulting contact '
	|| 'contractors cooking cookingchannel cool coop corsica country coupon coupons courses cpa cr credit creditcard '
	|| 'creditunion cricket crown crs cruise cruises csc cu cuisinella cv cw cx cy cymru cyou cz dabur dad dance data '
	|| 'date dating datsun day dclk dds de deal dealer deals degree delivery dell deloitte delta democrat dental '
	|| 'dentist desi design dev dhl diamonds diet digital direct directory discount discover dish diy dj dk dm dnp do '
	|| 'docs doctor dodge dog doha domains doosan dot download drive dtv dubai duck dunlop duns dupont durban dvag dvr '
	|| 'dz earth eat ec eco edeka edu education ee eg eh email emerck energy engineer engineering enterprises epost '
	|| 'epson equipment er ericsson erni es esq estate esurance et etisalat eu eurovision eus events everbank exchange '
	|| 'expert exposed express extraspace fage fail fairwinds faith family fan fans farm farmers fashion fast fedex '
	|| 'feedback ferrari ferrero fi fiat fidelity fido film final finance financial fire firestone firmdale fish '
	|| 'fishing fit fitness fj fk flickr flights flir florist flowers flsmidth fly fm fo foo food foodnetwork football '
	|| 'ford forex forsale forum foundation fox fr free fresenius frl frogans frontdoor frontier ftr fujitsu fujixerox '
	|| 'fun fund furniture futbol fyi ga gal gallery gallo gallup game games gap garden gay gb gbiz gd gdn ge gea gent '
	|| 'genting george gf gg ggee gh gi gift gifts gives giving gl glade glass gle global globo gm gmail gmbh gmo gmx '
	|| 'gn godaddy gold goldpoint golf goo goodhands goodyear goog google gop got gov gp gq gr grainger graphics gratis '
	|| 'green gripe grocery group gs gt gu guardian gucci guge guide guitars guru gw gy hair hamburg hangout haus hbo '
	|| 'hdfc hdfcbank health healthcare help helsinki here hermes hgtv hiphop hisamitsu hitachi hiv hk hkt hm hn hockey '
	|| 'holdings holiday homedepot homegoods homes homesense honda honeywell horse hospital host hosting hot hoteles '
	|| 'hotels hotmail house how hr hsbc ht htc hu hughes hyatt hyundai ibm icbc ice icu id ie ieee ifm iinet ikano il '
	|| 'im imamat imdb immo immobilien in inc industries infiniti info ing ink institute insurance insure int intel '
	|| 'international intuit investments io ipiranga iq ir irish is iselect ismaili ist istanbul it itau itv iveco iwc '
	|| 'jaguar java jcb jcp je jeep jetzt jewelry jio jlc jll jm jmp jnj jo jobs joburg jot joy jp jpmorgan jprs juegos '
	|| 'juniper kaufen kddi ke kerryhotels kerrylogistics kerryproperties kfh kg kh ki kia kim kinder kindle kitchen '
	|| 'kiwi km kn koeln komatsu kosher kp kpmg kpn kr krd kred kuokgroup kw ky kyoto kz la lacaixa ladbrokes '
	|| 'lamborghini lamer lancaster lancia lancome land landrover lanxess lasalle lat latino latrobe law lawyer lb lc '
	|| 'lds lease leclerc lefrak legal lego lexus lgbt li liaison lidl life lifeinsurance lifestyle lighting like lilly '
	|| 'limited limo lincoln linde link lipsy live living lixil lk llc llp loan loans locker locus loft lol london '
	|| 'lotte lotto love lpl lplfinancial lr ls lt ltd ltda lu lundbeck lupin luxe luxury lv ly ma macys madrid maif '
	|| 'maison makeup man management mango map market marketing markets marriott marshalls maserati mattel mba mc mcd '
	|| 'mcdonalds mckinsey md me med media meet melbourne meme memorial men menu meo merckmsd metlife mf mg mh miami '
	|| 'microsoft mil mini mint mit mitsubishi mk ml mlb mls mm mma mn mo mobi mobile mobily moda moe moi mom monash '
	|| 'money monster montblanc mopar mormon mortgage moscow moto motorcycles mov movie movistar mp mq mr ms msd mt mtn '
	|| 'mtpc mtr mu museum mutual mutuelle mv mw mx my mz na nab nadex nagoya name nationwide natura navy nba nc ne nec '
	|| 'net netbank netflix network neustar new newholland news next nextdirect nexus nf nfl ng ngo nhk ni nico nike '
	|| 'nikon ninja nissan nissay nl no nokia northwesternmutual norton now nowruz nowtv np nr nra nrw ntt nu nyc nz '
	|| 'obi observer off office okinawa olayan olayangroup oldnavy ollo om omega one ong onion onl online onyourside '
	|| 'ooo open oracle orange org organic orientexpress origins osaka otsuka ott ovh pa page pamperedchef panasonic '
	|| 'panerai paris pars partners parts party passagens pay pccw pe pet pf pfizer pg ph pharmacy phd philips phone '
	|| 'photo photography photos physio piaget pics pictet pictures pid pin ping pink pioneer pizza pk pl place play '
	|| 'playstation plumbing plus pm pn pnc pohl poker politie porn post pr pramerica praxi press prime pro prod '
	|| 'productions prof progressive promo properties property protection pru prudential ps pt pub pw pwc py qa qpon '
	|| 'quebec quest qvc racing radio raid re read realestate realtor realty recipes red redstone redumbrella rehab '
	|| 'reise reisen reit reliance ren rent rentals repair report republican rest restaurant review reviews rexroth '
	|| 'rich richardli ricoh rightathome ril rio rip rmit ro rocher rocks rodeo rogers room rs rsvp ru rugby ruhr run '
	|| 'rw rwe ryukyu sa saarland safe safety sakura sale salon samsclub samsung sandvik sandvikcoromant sanofi sap '
	|| 'sapo sarl sas save saxo sb sbi sbs sc sca scb schaeffler schmidt scholarships school schule schwarz science '
	|| 'scjohnson scor scot sd se search seat secure security seek select sener services ses seven sew sex sexy sfr sg '
	|| 'sh shangrila sharp shaw shell shia shiksha shoes shop shopping shouji show showtime shriram si silk sina '
	|| 'singles site sj sk ski skin sky skype sl sling sm smart smile sn sncf so soccer social softbank software sohu '
	|| 'solar solutions song sony soy space spiegel sport spot spreadbetting sr srl srt ss st stada staples star '
	|| 'starhub statebank statefarm statoil stc stcgroup stockholm storage store stream studio study style su sucks '
	|| 'supplies supply support surf surgery suzuki sv swatch swiftcover swiss sx sy sydney symantec systems sz tab '
	|| 'taipei talk taobao target tatamotors tatar tattoo tax taxi tc tci td tdk team tech technology tel telecity '
	|| 'telefonica temasek tennis teva tf tg th thd theater theatre tiaa tickets tienda tiffany tips tires tirol tj '
	|| 'tjmaxx tjx tk tkmaxx tl tm tmall tn to today tokyo tools top toray toshiba total tours town toyota toys tp tr '
	|| 'trade trading training travel travelchannel travelers travelersinsurance trust trv tt tube tui tunes tushu tv '
	|| 'tvs tw tz ua ubank ubs uconnect ug uk um unicom university uno uol ups us uy uz va vacations vana vanguard vc '
	|| 've vegas ventures verisign versicherung vet vg vi viajes video vig viking villas vin vip virgin visa vision '
	|| 'vista vistaprint viva vivo vlaanderen vn vodka volkswagen volvo vote voting voto voyage vu vuelos wales walmart '
	|| 'walter wang wanggou warman watch watches weather weatherchannel webcam weber website wed wedding weibo weir wf '
	|| 'whoswho wien wiki williamhill win windows wine winners wme wolterskluwer woodside work works world wow ws wtc '
	|| 'wtf xbox xerox xfinity xihuan xin xperia xxx xyz yachts yahoo yamaxun yandex ye yodobashi yoga yokohama you '
	|| 'youtube yt yun za zappos zara zero zip zippo zm zone zuerich zw'
	else 'vermögensberater vermögensberatung ελ ευ бг бел дети ею католик ком мкд мон москва онлайн орг рус рф сайт срб '
	|| 'укр қаз հայ קום ابوظبي اتصالات ارامكو الاردن البحرين الجزائر السعودية العليان المغرب امارات ایران بارت بازار '
	|| 'بيتك بھارت تونس سودان سورية شبكة عراق عرب عمان فلسطين قطر كاثوليك كوم مصر مليسيا موبايلي موريتانيا موقع همراه '
	|| 'پاکستان ڀارت कॉम नेट भारत भारतम् भारोत संगठन বাংলা ভারত ভাৰত ਭਾਰਤ ભારત ଭାରତ இந்தியா இலங்கை சிங்கப்பூர் భారత్ '
	|| 'ಭಾರತ ഭാരതം ලංකා คอม ไทย ລາວ გე みんな クラウド グーグル コム ストア セール ファッション ポイント 世界 中信 中国 中國 中文网 企业 佛山 信息 健康 八卦 公司 公益 台湾 台灣 '
	|| '商城 商店 商标 嘉里 嘉里大酒店 在线 大众汽车 大拿 天主教 娱乐 家電 工行 广东 微博 慈善 我爱你 手机 手表 招聘 政务 政府 新加坡 新闻 时尚 書籍 机构 淡马锡 游戏 澳門 点看 珠宝 移动 组织机构 '
	|| '网址 网店 网站 网络 联通 诺基亚 谷歌 购物 通販 集团 電訊盈科 飞利浦 食品 餐厅 香格里拉 香港 닷넷 닷컴 삼성 한국' end, ' ')
$$;

create or replace function autopost.ending_length(p_label text, p_next text) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: the length of the ending of a host that a label begins with. p_next: the character behind the label.
-- Returns: 0 if not found. No Latin letter, digit, @, + or - follows an ending.
declare
	v_label text := lower(p_label) || p_next;
	v_ending text := substring(v_label from '^(?:xn--[0-9a-z-]+|[a-z]+)');
begin
	if v_ending like 'xn--%' then
		return char_length(v_ending);
	elsif v_ending = any (autopost.link_endings(true)) and substr(v_label, char_length(v_ending) + 1, 1) !~ '[0-9@+-]'
		then
		return char_length(v_ending);
	elsif v_label ~ '[^\u0001-\u007F]' then
		return coalesce((
			select max(char_length(e.ending)) from unnest(autopost.link_endings(false)) e (ending)
			where starts_with(v_label, e.ending) and substr(v_label, char_length(e.ending) + 1, 1) !~ '[0-9a-z@+-]'),
				0);
	end if;
	return 0;
end
$$;

create or replace function autopost.domain_length(p_run text, p_next text) returns int
language plpgsql immutable parallel safe
as $$
-- Purpose: the length of the longest domain that a run of labels begins with. p_next: the character behind the run.
-- Returns: 0 if not found. The label before the ending has no underscore.
declare
	v_labels text[] := string_to_array(p_run, '.');
	v_from int := char_length(p_run) + 2; -- behind the dot that a label would have
	v_length int;
begin
	for v_n in reverse cardinality(v_labels) .. 2 loop
		v_from := v_from - char_length(v_labels[v_n]) - 1;
		if strpos(v_labels[v_n - 1], '_') = 0 then
			v_length := autopost.ending_length(v_labels[v_n], case when v_n = cardinality(v_labels) then p_next
				else '.' end);
			if v_length > 0 then
				return v_from + v_length - 1;
			end if;
		end if;
	end loop;
	return 0;
end
$$;

create or replace function autopost.is_possible_host(p_domain text) returns boolean
language sql immutable parallel safe
as $$
-- Purpose: whether each label of a domain fits into the 63 octets of the domain name system. Punycode needs about
-- eleven octets more than the characters of a label that is not ASCII.
select not exists (
	select 1 from regexp_split_to_table(p_domain, '[.。．｡]') l (label)
	where char_length(l.label) + case when l.label ~ '[^\u0001-\u007E]' then 11 else 0 end > 63)
$$;


create or replace function autopost.mark_plain_domains(p_domain text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: replaces the parts of a domain that are domains in Latin letters by chr(1).
declare
	v_run constant text := '((?:[-a-z0-9\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u024F\u0253-\u0254\u0256-\u0257\u0259\u025B\u0260\u0263\u0268-\u0269\u026F\u0272\u0275\u0280\u0283\u0288-\u028C\u0292\u02BB\u0300-\u036F\u0399\u03B9\u1E00-\u1EFF\u1FBE\u2C65-\u2C66\u2C7E-\u2C7F]+\.)+)([^.]*)';
	v_rest text := p_domain;
	v_out text := '';
	v_part text[];
	v_at int;
	v_length int;
begin
	loop
		v_part := regexp_match(v_rest, v_run, 'i');
		exit when v_part is null;
		v_at := strpos(v_rest, v_part[1] || v_part[2]);
		v_out := v_out || left(v_rest, v_at - 1);
		v_rest := substr(v_rest, v_at);
		v_length := autopost.domain_length(v_part[1] || v_part[2],
			substr(v_rest, char_length(v_part[1] || v_part[2]) + 1, 1));
		v_out := v_out || case when v_length > 0 then chr(1) else v_part[1] end;
		v_rest := substr(v_rest, coalesce(nullif(v_length, 0), char_length(v_part[1])) + 1);
	end loop;
	return v_out || v_rest;
end
$$;

create or replace function autopost.mark_links(p_text text) returns text
language plpgsql immutable parallel safe
as $$
-- Purpose: replaces each link of a text, as twitter-text 3.1 finds them, by chr(1). The text is
--          composed; it keeps no other chr(1) or chr(2).
-- A link without a scheme is the part of its domain in Latin letters, with the path.
declare
	v_accents constant text := '\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u024F\u0253-\u0254\u0256-\u0257\u0259\u025B\u0260\u0263\u0268-\u0269\u026F\u0272\u0275\u0280\u0283\u0288-\u028C\u0292\u02BB\u0300-\u036F\u0399\u03B9\u1E00-\u1EFF\u1FBE\u2C65-\u2C66\u2C7E-\u2C7F';
	-- first and last of a label
	v_letter constant text := '[^\u0009-\u000D\u0020-\u0021\u0023-\u002F\u003A-\u0040\u005B-\u005F\u007B-\u007E\u0085\u00A0\u061C\u1680\u180E\u2000-\u200A\u200E-\u200F\u2028-\u202F\u205F\u2066-\u2069\u3000\uFEFF\uFFFE-\uFFFF]';
	-- between them
	v_within constant text := '[^\u0009-\u000D\u0020-\u0021\u0023-\u002C\u002E-\u002F\u003A-\u0040\u005B-\u005E\u007B-\u007E\u0085\u00A0\u061C\u1680\u180E\u2000-\u200A\u200E-\u200F\u2028-\u202F\u205F\u2066-\u2069\u3000\uFEFF\uFFFE-\uFFFF]';
	v_start constant text := '(https?://)?((?:' || v_letter || '(?:' || v_within || '*' || v_letter || ')?\.)+'
		|| v_within || '+)';
	v_path_char constant text := '[-a-z0-9!*'';:=+,.$/%#\[\]\u2013_~@|&\u0400-\u04FF\u1C80-\u1C87' || v_accents || ']';
	v_path_end constant text := '[-+a-z0-9=_#/\u0400-\u04FF\u1C80-\u1C87' || v_accents || ']';
	v_parens constant text := '\((?:' || v_path_char || '+|' || v_path_char || '*\(' || v_path_char || '+\)'
		|| v_path_char || '*)\)';
	v_rest constant text := '^((?::[0-9]+)?)((?:/(?:(?:' || v_path_char || '|' || v_parens || ')*' || v_path_end || '|'
		|| v_parens || ')*)?)'
		|| '((?:\?[-a-z0-9!?*''@();:&=+$/%#\[\]_.,~|]*[-a-z0-9_&=#/])?)';
	v_text text := translate(normalize(p_text, NFC), chr(1) || chr(2), '');
	v_out text := '';
	v_before text; -- the character before a link
	v_found text[];
	v_at int;
	v_domain text;
	v_rests text[];
	v_link text;
	v_plain text;
	v_slug text;
begin
	if strpos(v_text, '.') = 0 then
		return v_text;
	end if;
	loop
		v_found := regexp_match(v_text,
			'([^\u0023-\u0024\u0030-\u0039\u0040-\u005A\u0061-\u007A\uFEFF\uFF03\uFF20\uFFFE-\uFFFF]' || case
			when v_out = '' then '|^' else '' end || ')' || v_start, 'i');
		exit when v_found is null;
		v_at := strpos(v_text, concat(v_found[1], v_found[2], v_found[3]));
		v_before := v_found[1];
		v_out := v_out || left(v_text, v_at - 1 + char_length(v_before));
		v_text := substr(v_text, v_at + char_length(v_before));
		v_at := char_length(concat(v_found[2], v_found[3]));
		v_at := autopost.domain_length(v_found[3], substr(v_text, v_at + 1, 1));
		if v_at = 0 then
			if v_before = '' then -- the search continues behind the first character
				v_out := left(v_text, 1);
				v_text := substr(v_text, 2);
			end if;
			continue;
		end if;
		v_domain := left(v_found[3], v_at);
		v_rests := regexp_match(substr(v_text, char_length(concat(v_found[2], v_domain)) + 1), v_rest, 'i');
		v_link := concat(v_found[2], v_domain, v_rests[1], v_rests[2], v_rests[3]);
		v_text := substr(v_text, char_length(v_link) + 1);
		if not autopost.is_possible_host(v_domain)
			or char_length(v_link) + char_length(coalesce(v_found[2], 'https://')) > 4096 then
			v_out := v_out || v_link;
		elsif v_found[2] is not null then
			v_slug := case when v_domain ~* '^t\.co$' and v_rests[1] = '' then substring(v_rests[2]
				from '^/([A-Za-z0-9]+)') end;
			v_out := v_out || case when v_slug is null then chr(1) when char_length(v_slug) > 40 then v_link
				when substr(v_rests[2], char_length(v_slug) + 2) = '' then chr(1)
				else chr(1) || substr(v_rests[2], char_length(v_slug) + 2) || v_rests[3] end;
		else
			v_plain := case when v_before in ('-', '_', '.', '/') then v_domain
				else autopost.mark_plain_domains(v_domain) end;
			v_out := v_out || case when v_rests[2] <> '' and strpos(v_plain, chr(1)) > 0 then substring(v_plain
				from '^.*' || chr(1))
				else concat(v_plain, v_rests[1], v_rests[2], v_rests[3]) end;
		end if;
	end loop;
	return v_out || v_text;
end
$$;
