package races_test
import ("testing";"os";"strings")
func TestTmp(t *testing.T){
 var g []act
 for _,w:=range strings.Split(os.Getenv("PAIR"),"+") { for _,a:=range acts { if strings.TrimSpace(a.String())==w {g=append(g,a)} } }
 t.Log(g)
 s:=open(t); c:=&tally{}
 s.meet(g,c)
 t.Log(c.meetings.Load(), c.stops.Load())
 for _,x:=range c.trouble {t.Log(x)}
}
