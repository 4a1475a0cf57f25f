"""What the name or label of a column speaks of: topics, from words of eight languages and of well-known surveys.

English, German, French, Spanish, Italian, Dutch, Portuguese, Polish; accents do not matter. A name is cut at signs,
digits and capitals (`hhSize`, `marital-status`), words that are written together are taken apart where all pieces are
known (`agegroup`, `marstat`), and of long words the beginning or end suffices (`Wohnungsnummer`).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WORDS = {
    # who it is
    "name": """name names surname firstname lastname forename fullname nickname username nachname vorname
        familienname vollname nom prenom nomfamille nombres apellido apellidos cognome nome nominativo sobrenome
        apelido naam achternaam voornaam imie nazwisko login""",
    "contact": """email mail courriel correo phone telephone telefon telefono telefone telefoon tel mobile mobil
        handy movil celular cellulare gsm fax address adresse adres direccion indirizzo endereco street strasse
        calle straat ulica iban passport passeport pasaporte passaporto paspoort passaporte paszport ssn nif dni
        nie cpf pesel bsn nino ahv niss siren siret codicefiscale steuernummer steuerid kennzeichen licenceplate
        licenseplate ipaddress imei url website socialsecurity sozialversicherungsnummer kontonummer
        accountnumber creditcard kreditkarte""",
    "id": """id ids uid uuid guid identifier ident identification identifiant identificador identificativo
        identificatore identificatie identyfikator kennung kennziffer idnr idno matricule matricula rowid
        rowname rownames rowno recordid pernum personid personnummer serialno serial seqn caseno caseid casenum
        lfdnr laufendenummer rownumber rownum rb030 pb030 mrn pseudonym""",
    "number": """no nr num number nummer numero numer nro nb""",
    "person": """person respondent resp respondant encuestado befragte befragter patient paciente paziente
        pacjent individual individu individuo individuum subject member case record index personne persona
        pessoa persoon osoba employee client customer kunde cliente klient student teilnehmer user participant
        questionnaire fragebogen interviewee zeile datensatz pers row line observation obs""",
    "household": """household hh haushalt menage foyer hogar famiglia huishouden domicilio gospodarstwo
        gospodarstwa dwelling cluster psu hhold hshld family familie famille familia rodzina hb030 db030 rb040
        px030 hid hhid hhnr hhno hhnum householdid householdno haushaltsid haushaltsnummer haushaltsnr
        numerogospodarstwa""",
    "weight": """weight weights wgt wgts wt fnlwgt afnlwgt pweight fweight aweight iweight samplingweight
        surveyweight finalweight wtfinl perwt hhwt asecwt pwgtp wgtp pwsswgt wtper wtpfin gewicht gewichte
        gewichtung gewichtungsfaktor hochrechnungsfaktor hochrechnung hrf phrf hhrf poids pond ponderation
        coefficient ponderacion factorexpansion factordeexpansion facexp fexp peso pesos pesofinal
        pesocampionario coefficienteriporto ponderazione gewichten weging weegfactor ophoogfactor wegingsfactor
        ponderacao fatorexpansao waga wagi wagaanalityczna db090 pb040 rb050 pb060 expansionfactor
        expansionfaktor raisingfactor grossingfactor calibrationweight designweight dweight pspwght anweight""",
    # known to others
    "sex": """sex gender sexe genre sexo genero sesso genere geslacht geschlecht plec plci male female""",
    "age": """age agep ages agegr agegrp agecat alter lebensalter edad eta idade leeftijd wiek wieku""",
    "birth": """birth born dob birthday birthdate birthyear yearofbirth dateofbirth geburt geburtsdatum
        geburtsjahr geburtstag naissance nacimiento nascita geboorte geboortedatum geboortejaar nascimento
        urodzenia dataurodzenia gebdat gebjahr yob""",
    "place": """region regions state province county district municipality city town village country countries
        nation location place area zone nuts lau puma fips msa smsa metro metropolitan urban rural urbrur
        urbanicity residence postal postcode postalcode zip zipcode plz postleitzahl land bundesland kreis
        gemeinde ort wohnort stadt departement commune ville pays codepostal provincia municipio ciudad pueblo
        pais codigopostal comunidad regione comune citta paese cap codicepostale provincie gemeente stad
        woonplaats regio cidade concelho freguesia distrito wojewodztwo powiat gmina miasto gminy powiatu
        wojewodztwa kraj kodpocztowy miejscowosc neighbourhood neighborhood statefip countyfip census tract geo
        geocode stratum strata school hospital bezirk urb rur staat estado regiao wojew""",
    "position": """latitude longitude lat lon lng breitengrad laengengrad latitud longitud latitudine
        longitudine breedtegraad lengtegraad density easting northing coordinate coordinates distance altitude""",
    "origin": """race races ethnicity ethnic ethnie etnia etni etnicidad etniciteit herkunft
        staatsangehoerigkeit nationality national nationalite nacionalidad nazionalita nacionalidade
        nationaliteit narodowosc obywatelstwo citizenship citizen ciudadania cittadinanza cidadania hispanic
        hispan hisp rac racep bpl birthplace native migration migrant immigrant foreign foreigner language
        languages sprache langue idioma lengua lingua taal jezyk lang origin tribe caste colour""",
    "family": """marital marstat marst married marriage civil civilstatus familienstand zivilstand etatcivil
        situationmatrimoniale matrimonial estadocivil statocivile burgerlijkestaat burgerlijkstaat stancywilny
        spouse partner widowed divorced children kids kinder enfants hijos figli kinderen filhos dzieci nchild
        hsize hhsize famsize householdsize familysize haushaltsgroesse taillemenage tamanohogar
        dimensionefamiglia huishoudgrootte relationship relation relate relat related relp kinship
        verwandtschaft parentesco parentela parente pokrewienstwo head cohabitation single""",
    "dwelling": """housing house home tenure owner ownership rented tenancy dwellingtype wohnung logement
        vivienda abitazione woning habitacao mieszkanie roof wall walls floor electricity sanitation toilet""",
    "work": """occupation occu occ occp job jobs profession professional employment employed employer employee
        empstat empst emp labor labour laborforce labourforce work worker workclass working unemployed
        selfemployed parttime fulltime industry industries ind indp sector branch nace isco naics sic soc naicsp
        socp company enterprise firm comp position beruf berufstaetig erwerb erwerbsstatus erwerbstaetigkeit
        branche wirtschaftszweig arbeit taetigkeit betrieb metier emploi activite secteur csp pcs ocupacion
        empleo trabajo actividad situacionlaboral cnae cno occupazione professione lavoro settore ateco beroep
        werk bedrijf sbi profissao emprego trabalho atividade cae zawod zawodu praca branza pkd sektor military
        veteran experience""",
    "education": """education educ edu educational schooling schoolyears degree qualification isced bildung
        bildungsabschluss schulabschluss ausbildung diplome diploma formation niveauetudes estudios educacion
        niveleducativo istruzione titolostudio titolodistudio opleiding opleidingsniveau onderwijs educacao
        escolaridade instrucao wyksztalcenie edukacja attainment""",
    # what is to be kept confidential
    "health": """health healthy illness ill sick sickness disease diseases diagnosis diagnoses disability
        disabled impairment chronic symptom treatment therapy medication drug drugs medicine doctor physician
        visits hospitalised hospitalized hospitalization hospitalizations hospitalisation admissions surgery bmi
        blood pressure cholesterol glucose insulin heart diabetes cancer tumor tumour hiv pregnant pregnancy
        depress depression depressed anxiety mental suicide smoke smoker smoking cigarette cigarettes tobacco
        alcohol alc drinking drinker icd gesundheit krank krankheit behinderung erkrankung raucher rauchen
        schwanger sante maladie handicap fumeur salud enfermedad discapacidad fumador tabaco salute malattia
        disabilita fumatore gezondheid ziekte beperking roker saude doenca deficiencia zdrowie choroba
        niepelnosprawnosc palenie grossesse embarazo mortality death died dead mood stress pain injury vision
        hearing cognitive""",
    "body": """height bodyheight stature koerpergroesse taille talla estatura altezza lengte altura wzrost bmi
        waist birthweight bodyweight""",
    "belief": """religion religious church faith konfession kirche religie religia religiao party vote voted
        voting election political politics ideology union gewerkschaft syndicat sindicato trust satisfaction
        satisfied satisf happiness happy opinion attitude vertrauen zufriedenheit meinung confiance confianza
        fiducia vertrouwen confianca zaufanie orientation crime criminal offence offense conviction arrest
        prison victim abuse violence partei partito partido partij partia""",
    "money": """income incomes inctot inc hhincome wage wages salary earnings earning earn pay payment paid
        revenue revenues sales turnover profit loss gain gains capital tax taxes debt debts asset assets wealth
        savings saving expenditure expenditures expend expense expenses spending consumption price prices value
        amount benefit benefits pension pensions allowance transfer cost costs rent mortgage loan credit
        interest dividend dividends fee budget money cash euro eur usd dollars poverty pincp einkommen lohn
        gehalt verdienst umsatz gewinn steuer steuern schulden vermoegen ausgaben preis betrag wert rente kosten
        miete haushaltseinkommen revenu revenus salaire impot impots dette patrimoine depense depenses prix
        montant valeur loyer chiffreaffaires ingreso ingresos renta salario sueldo impuesto deuda gasto gastos
        precio importe ventas reddito redditi stipendio ricavi imposta tasse debito spesa spese prezzo importo
        fatturato pensione inkomen loon salaris omzet belasting schuld uitgaven prijs bedrag pensioen renda
        rendimento rendimentos ordenado imposto divida despesa despesas preco montante dochod dochody dochodu
        zarobki wynagrodzenie placa podatek dlug wydatki cena kwota przychod emerytura salaries""",
    # how it is told
    "count": """time minutes minute mins people persons individuals students pupils patients members employees
        workers customers clients users cases experience seniority count counts counted howmany numberof size
        num nb total hours hour hrs hr days duration dur length tenureyears years yrs months weeks anzahl zahl
        groesse stunden dauer jahre nombre taille heures duree effectif numero cantidad tamano horas duracion
        anos numerosita dimensione ore durata aantal grootte uren duur quantidade tamanho duracao liczba
        wielkosc godziny children kids kinder enfants hijos figli kinderen filhos dzieci siblings friends friend
        rooms bedrooms zimmer pieces habitaciones stanze kamers quartos pokoje population households cars
        vehicles hsize hhsize famsize nchild ratio share rate percent percentage pct index mean median average
        avg""",
    "scale": """agegr agegrp agecat level levels niveau nivel livello poziom stufe grade grades class klasse
        classe clase klasa rank rang rango ranking decile quintile quartile percentile dezil quintil quartil
        decil stage degree scale skala echelle escala scala schaal rating score punkte puntuacion punteggio
        ocena group groups gruppe groupe grupo gruppo groep grupa band bracket grp gr limit frequency severity
        quality intensity priority""",
    "code": """code codes coded cod kod kode codigo codice category categories cat kategorie categorie categoria
        kategoria type typ tipo types kind flag indicator dummy status stat statut stato estatus sector branch
        key recode label""",
    "year": """year yr yyyy survey_year jahr annee anno ano jaar rok erhebungsjahr surveyyear""",
    "season": """month quarter week weekday day dayofweek monat quartal woche wochentag mois trimestre semaine
        mes semana dia mese settimana maand kwartaal miesiac kwartal season""",
    "text": """comment comments remark remarks note notes description text freetext verbatim answer other_text
        bemerkung bemerkungen kommentar anmerkung beschreibung commentaire commentaires remarque descriptif
        observaciones comentario comentarios descripcion osservazioni commento descrizione nota opmerking
        opmerkingen omschrijving observacoes descricao uwagi komentarz opis specify""",
    # nothing by itself, but known as a piece of others
    "": """hh tot min max mean median sum first last main own new old young other oth res com per week weekly
        monthly annual yearly net gross mar eq eco status real nominal date of in the und de del della van do da
        current present previous past usual hourly average avg diff change ecostat""",
}

_TOPICS: dict[str, set[str]] = {}
for _topic, _listed in _WORDS.items():
    for _word in _listed.replace("_", "").split():
        _TOPICS.setdefault(_word, set()).update({_topic} - {""})

_SHORTEST_PIECE, _SHORTEST_BEGINNING, _SHORTEST_END = 3, 5, 6
"""Letters at least: of a piece of a word whose pieces are all known, and of a known beginning or end of a longer."""
_SHORT_ENDS = ("name", "code", "cod", "size", "type", "date", "wage", "naam", "nummer")
"""Shorter words that nevertheless tell what a longer word is when it ends with them."""
_ID_ENDING = re.compile(r"[a-z](ID|Id)$|^[A-Z]{2,}ID$|(?i:[a-z]_?uuid)$")
_NO_IDS = re.compile(
    r"(?i)(paid|covid|grid|bid|kid|said|void|solid|rapid|fluid|hybrid|acid|aid|raid|lipid|valid|resid)$"
)
_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_EXPANDED = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "L", "ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}
)
_LONGEST_PHRASE = 3


def tokens(text: str) -> tuple[str, ...]:
    """The words of a name or label in small letters without accents; digits alone are none.

    >>> tokens("hhSize_2"), tokens("Größe"), tokens("état-civil")
    (('hh', 'size'), ('groesse',), ('etat', 'civil'))
    """
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFC", text).translate(_EXPANDED))
    plain = "".join(sign for sign in spread if not unicodedata.combining(sign))
    return tuple(word.lower() for word in _PIECES.findall(plain) if not word.isdigit())


@lru_cache(maxsize=4096)
def topics(text: str) -> frozenset[str]:
    """What a name or label speaks of.

    >>> sorted(topics("marital-status")), sorted(topics("Haushaltsnummer")), sorted(topics("wiek"))
    (['code', 'family'], ['household'], ['age'])
    >>> sorted(topics("UTILITYID")), sorted(topics("capacity"))
    (['id'], [])
    """
    words = tokens(text)
    found: set[str] = set(_TOPICS.get("".join(re.findall("[a-z0-9]", text.lower())), ()))
    place = 0
    while place < len(words):
        for many in range(min(_LONGEST_PHRASE, len(words) - place), 0, -1):
            known = _TOPICS.get("".join(words[place : place + many]))
            if known is not None:
                found |= known
                break
        else:
            many = 1
            found |= _of_parts(words[place])
        place += many
    if _ID_ENDING.search(text) and not _NO_IDS.search(text):
        found.add("id")
    return frozenset(found)


def _of_parts(word: str) -> set[str]:
    """The topics of a word that is not known as a whole."""
    pieces = _taken_apart(word)
    if pieces:
        return set[str]().union(*(_TOPICS[piece] for piece in pieces))
    found: set[str] = set()
    for length in range(len(word) - 1, _SHORTEST_BEGINNING - 1, -1):
        if word[:length] in _TOPICS:
            found |= _TOPICS[word[:length]]
            break
    for length in range(len(word) - 1, min(map(len, _SHORT_ENDS)) - 1, -1):
        end = word[-length:]
        if end in _TOPICS and (length >= _SHORTEST_END or end in _SHORT_ENDS):
            found |= _TOPICS[end]
            break
    return found


def _taken_apart(word: str) -> tuple[str, ...] | None:
    """The fewest known words that a word consists of."""
    best: list[tuple[str, ...] | None] = [(), *([None] * len(word))]
    for end in range(1, len(word) + 1):
        for start in range(end):
            before, piece = best[start], word[start:end]
            known = piece in _TOPICS and (len(piece) >= _SHORTEST_PIECE or (piece == "hh" and start == 0))
            if before is not None and known:
                now, held = (*before, piece), best[end]
                if held is None or len(now) < len(held):
                    best[end] = now
    return best[len(word)]
